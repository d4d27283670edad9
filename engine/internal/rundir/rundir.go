// Package rundir manages the files of a run: the record of the current or last try, the agent's output, and
// other files in their place. Package util/runfiles defines the file names, and what programs other than the
// engine may read.
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

// A process that only tests a lock holds it for a moment, which can be long on a busy machine.
const (
	ProbePatience = 50 * time.Millisecond // time after which the lock counts as held
	LockPatience  = 5 * time.Second       // time to wait for a new lock
)

// Maximum sizes of files in a run directory, in bytes.
const (
	MaxTotals = 1 << 20
	maxStop   = 1 << 10
	MaxWork   = 64 << 20 // contains a person's prompt
)

// Dir is runs/<thread>, the directory of the current or last step. An agent can write anything to it and
// replace it. So symbolic links out of the home are not followed, special files are not waited for, and both
// are moved aside before the next run.
type Dir struct {
	Path  string
	None  bool   // it is known not to exist
	Aside string // where obstacles are moved
	FS    durable.FS
	Warn  func(string) // called with warnings, if not nil
}

// File returns the path of a file in the directory.
func (d Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Exists reports whether there is a run directory. A symbolic link doesn't count, because files in its target
// would be removed.
func (d Dir) Exists() bool {
	return !d.None && runfiles.Dir(d.Path).Exists()
}

// InTheWay reports whether something else is in place of the directory.
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

// Read returns the record; see [Record].Missing and [Record].Damaged.
func (d Dir) Read() Record {
	data, err := d.ReadFile(runfiles.RecordFile, runfiles.MaxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{Missing: true}
	}
	if err != nil {
		return Record{Damaged: true}
	}
	return decodeRecord(data)
}

// Write replaces the record.
func (d Dir) Write(r Record) error { return d.writeLine(runfiles.RecordFile, r, d.Replace) }

// Update is Write after another record of the run, or of one that is done.
func (d Dir) Update(r Record) error { return d.writeLine(runfiles.RecordFile, r, d.AddLine) }

func (d Dir) writeLine(name string, v any, write func(name string, line []byte) error) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return write(name, append(line, '\n'))
}

// AddLine adds a line to a file that is read with [durable.LastLine].
func (d Dir) AddLine(name string, line []byte) error {
	if durable.AddLine(d.FS, d.File(name), line) == nil {
		return nil
	}
	return d.Replace(name, line)
}

// Replace replaces a file atomically, without flushing it.
func (d Dir) Replace(name string, data []byte) error {
	if err := d.Make(); err != nil {
		return err
	}
	if err := d.free(name); err != nil {
		return err
	}
	if err := durable.Replace(d.FS, d.File(name), data, 0o600); err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return nil
}

// Clear prepares the directory for a new run. It removes all files except the record before a new record is
// written, so that a record never appears next to the output of another run. The new lock file keeps a
// descendant of an earlier agent, which still holds the old one, from being mistaken for the new agent.
func (d Dir) Clear() error {
	if err := d.Make(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("prepare run directory: %w", err)
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
			if err := d.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a file, if it exists.
func (d Dir) remove(name string) error {
	if err := d.FS.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("prepare run directory: %w", err)
	}
	return nil
}

// keeps reports whether a file belongs to more than one run: the record, which is replaced, files of a
// worker, which makes several runs, and files of the thread.
func keeps(name string) bool {
	switch name {
	case runfiles.RecordFile, runfiles.WorkFile, runfiles.LogFile, runfiles.TotalsFile, runfiles.TriesFile,
		runfiles.IndexFile, runfiles.IndexNoteFile,
		runfiles.IntentFile, runfiles.RestoreFile, runfiles.SetupFile:
		return true
	}
	return false
}

// ours reports whether a name must be a regular file. Other things that an agent puts there are harmless.
func ours(name string) bool {
	switch name {
	case runfiles.LockFile, runfiles.StopFile, runfiles.HoldFile, runfiles.StdoutFile, runfiles.StderrFile,
		runfiles.OutputFile, runfiles.ResultFile:
		return true
	}
	return keeps(name)
}

// Make creates the directory, and moves anything in its place aside.
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
		return fmt.Errorf("prepare run directory: %w", err)
	}
	if err := d.FS.MkdirAll(d.Path, 0o700); err != nil {
		return fmt.Errorf("prepare run directory: %w", err)
	}
	return nil
}

// free ensures that a name is unused or a regular file.
func (d Dir) free(name string) error {
	info, err := os.Lstat(d.File(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular():
		return nil
	case err != nil:
		return fmt.Errorf("prepare run directory: %w", err)
	case !info.IsDir(): // it contains nothing that could be lost
		return d.remove(name)
	}
	return d.putAside(name, info)
}

// maxAside limits how often obstacles of a thread are moved aside, so that a misbehaving agent doesn't fill
// the home.
const maxAside = 9

// putAside moves an obstacle in place of the directory, or of a file in it, out of the way, unchanged.
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
		_ = runfiles.Dir(what).Exists() // moving a directory takes permission to write in it
		if err := d.FS.Rename(what, to); err != nil {
			return fmt.Errorf("move %s aside: %w", what, err)
		}
		if d.Warn != nil {
			d.Warn(fmt.Sprintf("moved the %s in the place of %s to %s, to make room for a run",
				safeopen.Kind(info.Mode().Type()), what, to))
		}
		return nil
	}
	return fault.New(protocol.CodeFailed, "%s blocks a run, and %d others were moved aside already", what,
		maxAside).Because("run-in-the-way", "base", base)
}

// Lock takes the lock that the agent will inherit.
func (d Dir) Lock(ctx context.Context, patience time.Duration) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return durable.Lock(ctx, d.File(runfiles.LockFile))
}

// Alive reports whether the agent of a record is running, or the engine that starts it or checks its result.
// That is the case if the lock is held or, since an agent can remove the lock, if the recorded process
// exists.
func (d Dir) Alive(r Record) bool {
	if d.Exists() {
		if held, err := runfiles.Dir(d.Path).Alive(); held && err == nil {
			return true
		}
	}
	return r.AgentLives()
}

// SurelyAlive is like Alive, but not fooled by another process that tests the lock at the same moment. An agent whose
// lock can't be tested counts as running.
func (d Dir) SurelyAlive(ctx context.Context, r Record) bool {
	if d.hasLock() {
		held, err := d.Lock(ctx, ProbePatience)
		if err != nil {
			return true
		}
		_ = held.Unlock() // also released when the process ends
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

// Left reads the result that an agent has left on its stdout or, if that is unusable, the one recorded when
// it submitted its step. Errors are [*agentproc.ResultError].
func (d Dir) Left() (protocol.Result, error) {
	if !d.Exists() {
		return protocol.Result{}, &agentproc.ResultError{Reason: "no run directory"}
	}
	r, err := agentproc.ReadResult(d.Path)
	if err != nil {
		if kept, ok := step.KeptResult(d.Path); ok {
			return kept, nil
		}
	}
	return r, err
}

// Finished returns an agent's result, and reports whether it contains a step.
func (d Dir) Finished() (protocol.Result, bool) {
	r, err := d.Left()
	return r, err == nil && r.StepHash != ""
}

// RequestStop asks the engine of a run to stop after it. end means that the thread ends.
func (d Dir) RequestStop(r Record, end bool) error {
	text := r.ID()
	if end {
		text += forGood
	}
	return d.Replace(runfiles.StopFile, []byte(text))
}

// forGood follows the run ID in a stop request if the thread ends.
const forGood = "\nend\n"

// StopRequested reports whether this run was asked to stop.
func (d Dir) StopRequested(r Record) bool {
	asked, _ := d.stopRequest(r)
	return asked
}

// EndRequested reports whether the last run, or the thread's children, were asked to stop because the thread
// ends.
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

// PrepareWorker writes the work for a worker, and an empty log.
func (d Dir) PrepareWorker(job []byte) error {
	if err := d.Replace(runfiles.WorkFile, job); err != nil {
		return err
	}
	if err := d.free(runfiles.LogFile); err != nil {
		return err
	}
	if err := d.remove(runfiles.LogFile); err != nil {
		return err
	}
	return d.FS.Append(d.File(runfiles.LogFile), nil, 0o600, durable.NoFlush)
}

// BlockChildren prevents further children of the thread from starting. end means that the thread ends.
func (d Dir) BlockChildren(end bool) error {
	if end {
		return d.Replace(runfiles.HoldFile, []byte(forGood))
	}
	return d.Replace(runfiles.HoldFile, nil)
}

// UnblockChildren allows children to start again.
func (d Dir) UnblockChildren() error { return d.remove(runfiles.HoldFile) }

// ChildrenBlocked reports whether children are prevented from starting; see [Dir.BlockChildren].
func (d Dir) ChildrenBlocked() bool {
	_, err := os.Lstat(d.File(runfiles.HoldFile))
	return err == nil
}

// Tries returns the failed tries that are not part of a step of the thread.
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

// KeepTries saves the failed tries.
func (d Dir) KeepTries(t runfiles.Tries) error {
	lines, err := t.Lines()
	if err != nil {
		return err
	}
	return d.Replace(runfiles.TriesFile, lines)
}
