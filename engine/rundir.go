package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/rundir"
)

// A lock that others only probe is theirs for an instant, however long that may
// be on a busy machine.
const (
	probePatience = 50 * time.Millisecond // before it is taken for held
	lockPatience  = 5 * time.Second       // before a new one cannot be had
)

// How much of a file of a run directory is read, in bytes.
const (
	maxRecord = 1 << 20
	maxTotals = 1 << 20
	maxStop   = 1 << 10
	maxWork   = 64 << 20 // it holds a person's prompt
)

// runDir is runs/<thread>: the step in flight, or the last one. An agent can put
// anything there, and in its place. What is no directory of the home is not
// followed, what is no file is not waited for, and both are moved out of the way
// before the next run.
type runDir struct {
	path  string
	aside string // where what is in the way is moved to
	fs    durable.FS
	warn  func(string)
}

func (e *Engine) runDir(id string) runDir {
	return runDir{path: e.Dirs.Run(id), aside: filepath.Join(e.Dirs.Home, "quarantine"), fs: e.FS, warn: e.warn}
}

func (d runDir) file(name string) string { return filepath.Join(d.path, name) }

// exists reports whether there is a run directory. A link to one is none: it may
// lead anywhere, and files are removed in it.
func (d runDir) exists() bool {
	info, err := os.Lstat(d.path)
	return err == nil && info.IsDir()
}

// inTheWay reports whether something else is in the directory's place.
func (d runDir) inTheWay() bool {
	_, err := os.Lstat(d.path)
	return !d.exists() && !errors.Is(err, fs.ErrNotExist)
}

// readFile reads a file of at most max bytes.
func (d runDir) readFile(name string, max int64) ([]byte, error) {
	if !d.exists() {
		return nil, fs.ErrNotExist
	}
	return careful.ReadFile(d.file(name), max, careful.NoFollow)
}

// read returns the record, empty if there is none.
func (d runDir) read() record {
	data, err := d.readFile(rundir.RecordFile, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return record{missing: true}
	}
	if err != nil {
		return record{damaged: true}
	}
	return decodeRecord(data)
}

// write replaces the record.
func (d runDir) write(r record) error {
	data, err := encodeRecord(r)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return d.replace(rundir.RecordFile, data)
}

// replace writes a file whole, unflushed.
func (d runDir) replace(name string, data []byte) error {
	if err := d.make(); err != nil {
		return err
	}
	if err := d.free(name); err != nil {
		return err
	}
	temp, err := d.fs.WriteTemp(d.file(name), data, 0o600, durable.NoFlush)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	if err := d.fs.Rename(temp, d.file(name)); err != nil {
		return fmt.Errorf("record the run: %w", errors.Join(err, d.fs.Remove(temp)))
	}
	return nil
}

// clear makes the directory ready for a new run. All files but the record go,
// and before a new record is written: a record never stands beside output that
// is not its own. A new lock file also means that a descendant of an earlier
// agent, which still holds the old one, is not taken for the new agent.
func (d runDir) clear() error {
	if err := d.make(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
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
			if err := d.fs.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	case rundir.RecordFile, rundir.WorkFile, rundir.LogFile, rundir.TotalsFile, rundir.TriesFile, rundir.IndexFile, rundir.RestoreFile:
		return true
	}
	return false
}

// ours names the files that must be files. Whatever else an agent has put there is
// not in the way.
func ours(name string) bool {
	switch name {
	case rundir.LockFile, rundir.StopFile, rundir.HoldFile, rundir.StdoutFile, rundir.StderrFile, rundir.OutputFile, rundir.ResultFile:
		return true
	}
	return keeps(name)
}

// make makes the directory. What is in its place is moved aside.
func (d runDir) make() error {
	info, err := os.Lstat(d.path)
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
	if err := d.fs.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	return nil
}

// free makes sure that a name is free, or a file's.
func (d runDir) free(name string) error {
	info, err := os.Lstat(d.file(name))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular():
		return nil
	case err != nil:
		return fmt.Errorf("prepare the run directory: %w", err)
	case !info.IsDir(): // there is nothing in it that could be lost
		if err := d.fs.Remove(d.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
func (d runDir) putAside(name string, info fs.FileInfo) error {
	what := filepath.Join(d.path, name)
	if err := d.fs.MkdirAll(d.aside, 0o700); err != nil {
		return fmt.Errorf("move %s aside: %w", what, err)
	}
	base := filepath.Join(d.aside, "run-"+filepath.Base(d.path))
	if name != "" {
		base += "-" + name
	}
	for n := range maxAside {
		to := fmt.Sprintf("%s-%d", base, n+1)
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.fs.Rename(what, to); err != nil {
			return fmt.Errorf("move %s aside: %w", what, err)
		}
		d.warn(fmt.Sprintf("%s in the place of %s was in the way of a run, and is %s now", careful.Kind(info.Mode().Type()), what, to))
		return nil
	}
	return hinted(fail(protocol.CodeFailed, "%s is in the way of a run, and %d like it were moved aside before", what, maxAside),
		"look at them, and then: rm -r "+base+"-*")
}

// lock takes the lock that the agent will inherit.
func (d runDir) lock(ctx context.Context, patience time.Duration) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return durable.Lock(ctx, d.file(rundir.LockFile))
}

// alive reports whether the agent of a record is, or the engine that is starting
// or judging it: the lock is held, or, since an agent can remove that, there is a
// process of its id that began when it did.
func (d runDir) alive(r record) bool {
	if d.exists() {
		if held, err := rundir.Dir(d.path).Alive(); held && err == nil {
			return true
		}
	}
	return r.agentLives()
}

// surelyAlive is alive, not mistaken when somebody else probes at that moment.
func (d runDir) surelyAlive(ctx context.Context, r record) bool {
	if d.hasLock() {
		held, err := d.lock(ctx, probePatience)
		if errors.Is(err, durable.ErrLocked) {
			return true
		}
		if err == nil {
			_ = held.Unlock()
		}
	}
	return r.agentLives()
}

// hasLock reports whether there is a lock file.
func (d runDir) hasLock() bool {
	if !d.exists() {
		return false
	}
	info, err := os.Lstat(d.file(rundir.LockFile))
	return err == nil && info.Mode().IsRegular()
}

// left reads what an agent has left: on its stdout, or if nothing can be made of
// that, what it wrote down when it submitted its step. Errors: [*agentproc.ResultError].
func (d runDir) left() (protocol.Result, error) {
	if !d.exists() {
		return protocol.Result{}, &agentproc.ResultError{Reason: "there is no run directory"}
	}
	r, err := agentproc.ReadResult(d.path)
	if err != nil {
		if kept, ok := step.KeptResult(d.path); ok {
			return kept, nil
		}
	}
	return r, err
}

// finished reads the result that an agent has left, if it has left one that
// names a step.
func (d runDir) finished() (protocol.Result, bool) {
	r, err := d.left()
	return r, err == nil && r.StepHash != ""
}

// requestStop asks the engine of a run not to go on after it.
func (d runDir) requestStop(r record) error {
	return d.replace(rundir.StopFile, []byte(r.id()))
}

// stopRequested reports whether this very run was asked to stop.
func (d runDir) stopRequested(r record) bool {
	data, err := d.readFile(rundir.StopFile, maxStop)
	return err == nil && string(data) == r.id()
}
