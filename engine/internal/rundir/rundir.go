// Package rundir owns the files of a run: the record of the try in flight or the last one,
// what the agent has left, and what is in the way. Their names, and what others than the
// engine may read, stand in util/runfiles.
package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A lock that others only probe is theirs for an instant, however long that may
// be on a busy machine.
const (
	ProbePatience = 50 * time.Millisecond // before it is taken for held
	LockPatience  = 5 * time.Second       // before a new one cannot be had
)

// How much of a file of a run directory is read, in bytes.
const (
	maxRecord = 1 << 20
	MaxTotals = 1 << 20
	maxStop   = 1 << 10
	MaxWork   = 64 << 20 // it holds a person's prompt
)

// runDir is runs/<thread>: the step in flight, or the last one. An agent can put
// anything there, and in its place. What is no directory of the home is not
// followed, what is no file is not waited for, and both are moved out of the way
// before the next run.
type Dir struct {
	Path  string
	Aside string // where what is in the way is moved to
	FS    durable.FS
	Warn  func(string) // nil: nobody is told
}

// File is the path of a file in it.
func (d Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Exists reports whether there is a run directory. A link to one is none: it may
// lead anywhere, and files are removed in it.
func (d Dir) Exists() bool {
	info, err := os.Lstat(d.Path)
	return err == nil && info.IsDir()
}

// InTheWay reports whether something else is in the directory's place.
func (d Dir) InTheWay() bool {
	_, err := os.Lstat(d.Path)
	return !d.Exists() && !errors.Is(err, fs.ErrNotExist)
}

// ReadFile reads a file of at most max bytes.
func (d Dir) ReadFile(name string, max int64) ([]byte, error) {
	if !d.Exists() {
		return nil, fs.ErrNotExist
	}
	return safeopen.ReadFile(d.File(name), max, safeopen.NoFollow)
}

// Read returns the record, empty if there is none.
func (d Dir) Read() Record {
	data, err := d.ReadFile(runfiles.RecordFile, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{Missing: true}
	}
	if err != nil {
		return Record{Damaged: true}
	}
	return decodeRecord(data)
}

// Write replaces the record.
func (d Dir) Write(r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return d.Replace(runfiles.RecordFile, data)
}

// Replace writes a file whole, unflushed.
func (d Dir) Replace(name string, data []byte) error {
	if err := d.Make(); err != nil {
		return err
	}
	if err := d.free(name); err != nil {
		return err
	}
	temp, err := d.FS.WriteTemp(d.File(name), data, 0o600, durable.NoFlush)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	if err := d.FS.Rename(temp, d.File(name)); err != nil {
		return fmt.Errorf("record the run: %w", errors.Join(err, d.FS.Remove(temp)))
	}
	return nil
}

// Clear makes the directory ready for a new run. All files but the record go,
// and before a new record is written: a record never stands beside output that
// is not its own. A new lock file also means that a descendant of an earlier
// agent, which still holds the old one, is not taken for the new agent.
func (d Dir) Clear() error {
	if err := d.Make(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !entry.Type().IsRegular():
			if !ours(name) {
				continue
			}
			if err := d.free(name); err != nil {
				return err
			}
		case !keeps(name):
			if err := d.FS.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("prepare the run directory: %w", err)
			}
		}
	}
	return nil
}

// keeps names the files that are not of one run: the record, which is replaced,
// what belongs to a worker, which makes several, and what belongs to the thread.
func keeps(name string) bool {
	switch name {
	case runfiles.RecordFile, runfiles.WorkFile, runfiles.LogFile, runfiles.TotalsFile, runfiles.TriesFile,
		runfiles.IndexFile, runfiles.IndexNoteFile,
		runfiles.IntentFile, runfiles.RestoreFile, runfiles.SetupFile:
		return true
	}
	return false
}

// ours names the files that must be files. Whatever else an agent has put there is
// not in the way.
func ours(name string) bool {
	switch name {
	case runfiles.LockFile, runfiles.StopFile, runfiles.HoldFile, runfiles.StdoutFile, runfiles.StderrFile,
		runfiles.OutputFile, runfiles.ResultFile:
		return true
	}
	return keeps(name)
}

// Make makes the directory. What is in its place is moved aside.
func (d Dir) Make() error {
	info, err := os.Lstat(d.Path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		if err := d.putAside("", info); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	if err := d.FS.MkdirAll(d.Path, 0o700); err != nil {
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	return nil
}

// free makes sure that a name is free, or a file's.
func (d Dir) free(name string) error {
	info, err := os.Lstat(d.File(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular():
		return nil
	case err != nil:
		return fmt.Errorf("prepare the run directory: %w", err)
	case !info.IsDir(): // there is nothing in it that could be lost
		if err := d.FS.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prepare the run directory: %w", err)
		}
		return nil
	}
	return d.putAside(name, info)
}

// maxAside bounds how often the same place of a thread is cleared, so that an
// agent which does it again and again does not fill the home.
const maxAside = 9

// putAside moves what is in the way of the directory, or of a file in it, out of
// the way, as it is.
func (d Dir) putAside(name string, info fs.FileInfo) error {
	what := filepath.Join(d.Path, name)
	if err := d.FS.MkdirAll(d.Aside, 0o700); err != nil {
		return fmt.Errorf("move %s aside: %w", what, err)
	}
	base := filepath.Join(d.Aside, "run-"+filepath.Base(d.Path))
	if name != "" {
		base += "-" + name
	}
	for n := range maxAside {
		to := fmt.Sprintf("%s-%d", base, n+1)
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.FS.Rename(what, to); err != nil {
			return fmt.Errorf("move %s aside: %w", what, err)
		}
		if d.Warn != nil {
			d.Warn(fmt.Sprintf("%s in the place of %s was in the way of a run, and is %s now",
				safeopen.Kind(info.Mode().Type()), what, to))
		}
		return nil
	}
	return fault.New(protocol.CodeFailed, "%s is in the way of a run, and %d like it were moved aside before", what,
		maxAside).Because("run-in-the-way", "base", base)
}

// Lock takes the lock that the agent will inherit.
func (d Dir) Lock(ctx context.Context, patience time.Duration) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return durable.Lock(ctx, d.File(runfiles.LockFile))
}

// Alive reports whether the agent of a record is, or the engine that is starting
// or judging it: the lock is held, or, since an agent can remove that, there is a
// process of its id that began when it did.
func (d Dir) Alive(r Record) bool {
	if d.Exists() {
		if held, err := runfiles.Dir(d.Path).Alive(); held && err == nil {
			return true
		}
	}
	return r.AgentLives()
}

// SurelyAlive is alive, not mistaken when somebody else probes at that moment.
func (d Dir) SurelyAlive(ctx context.Context, r Record) bool {
	if d.hasLock() {
		held, err := d.Lock(ctx, ProbePatience)
		if errors.Is(err, durable.ErrLocked) {
			return true
		}
		if err == nil {
			_ = held.Unlock()
		}
	}
	return r.AgentLives()
}

// hasLock reports whether there is a lock file.
func (d Dir) hasLock() bool {
	if !d.Exists() {
		return false
	}
	info, err := os.Lstat(d.File(runfiles.LockFile))
	return err == nil && info.Mode().IsRegular()
}

// Left reads what an agent has left: on its stdout, or if nothing can be made of
// that, what it wrote down when it submitted its step. Errors: [*agentproc.ResultError].
func (d Dir) Left() (protocol.Result, error) {
	if !d.Exists() {
		return protocol.Result{}, &agentproc.ResultError{Reason: "there is no run directory"}
	}
	r, err := agentproc.ReadResult(d.Path)
	if err != nil {
		if kept, ok := step.KeptResult(d.Path); ok {
			return kept, nil
		}
	}
	return r, err
}

// Finished reads the result that an agent has left, if it has left one that
// names a step.
func (d Dir) Finished() (protocol.Result, bool) {
	r, err := d.Left()
	return r, err == nil && r.StepHash != ""
}

// RequestStop asks the engine of a run not to go on after it; end: the thread ends with it.
func (d Dir) RequestStop(r Record, end bool) error {
	text := r.ID()
	if end {
		text += forGood
	}
	return d.Replace(runfiles.StopFile, []byte(text))
}

// forGood follows the run in a request to stop after which the thread ends.
const forGood = "\nend\n"

// StopRequested reports whether this very run was asked to stop.
func (d Dir) StopRequested(r Record) bool {
	asked, _ := d.stopRequest(r)
	return asked
}

// EndRequested reports whether the last run was asked to stop, or the thread's children
// were, since the thread ends.
func (d Dir) EndRequested() bool {
	held, err := d.ReadFile(runfiles.HoldFile, maxStop)
	_, end := d.stopRequest(d.Read())
	return end || err == nil && string(held) == forGood
}

func (d Dir) stopRequest(r Record) (asked, end bool) {
	data, err := d.ReadFile(runfiles.StopFile, maxStop)
	if err != nil {
		return false, false
	}
	run, end := strings.CutSuffix(string(data), forGood)
	return run == r.ID(), end && run == r.ID()
}

// PrepareWorker leaves what is to be done, and an empty log.
func (d Dir) PrepareWorker(job []byte) error {
	if err := d.Replace(runfiles.WorkFile, job); err != nil {
		return err
	}
	if err := d.free(runfiles.LogFile); err != nil {
		return err
	}
	if err := d.FS.Remove(d.File(runfiles.LogFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("prepare a worker: %w", err)
	}
	return d.FS.Append(d.File(runfiles.LogFile), nil, 0o600, durable.NoFlush)
}

// HoldBack says that no more children of the thread shall begin; end: the thread ends.
func (d Dir) HoldBack(end bool) error {
	if end {
		return d.Replace(runfiles.HoldFile, []byte(forGood))
	}
	return d.Replace(runfiles.HoldFile, nil)
}

// HoldBackNone says that children may begin.
func (d Dir) HoldBackNone() error {
	if err := d.FS.Remove(d.File(runfiles.HoldFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// HeldBack reports whether no more children shall begin; see [Dir.HoldBack].
func (d Dir) HeldBack() bool {
	_, err := os.Lstat(d.File(runfiles.HoldFile))
	return err == nil
}

// Tries are the failed ones that no step of the thread holds.
func (d Dir) Tries(t *thread.Thread) runfiles.Tries {
	if !d.Exists() {
		return nil
	}
	var done []protocol.Try
	if t.Last != nil {
		done = t.Last.Tries
	}
	return runfiles.Dir(d.Path).Tries(done)
}

// KeepTries keeps the tries that failed.
func (d Dir) KeepTries(t runfiles.Tries) error {
	lines, err := t.Lines()
	if err != nil {
		return err
	}
	return d.Replace(runfiles.TriesFile, lines)
}
