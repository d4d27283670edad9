package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// The files of a run directory, beside the agent's stdout and stderr.
const (
	recordFile = "run.json"
	lockFile   = "agent.lock"  // held while the agent, or who started it, is alive
	stopFile   = "stop"        // names the run that is to stop
	workFile   = "work.json"   // what a background worker is to do, or did last
	logFile    = "worker.log"  // its stderr
	totalsFile = "totals.json" // what the thread has cost so far
)

// A lock that others only probe is theirs for an instant, however long that may
// be on a busy machine.
const (
	probePatience = 50 * time.Millisecond // before it is taken for held
	lockPatience  = 5 * time.Second       // before a new one cannot be had
)

// runDir is runs/<thread>: the step in flight, or the last one.
type runDir struct {
	path string
	fs   durable.FS
}

func (e *Engine) runDir(id string) runDir { return runDir{path: e.Dirs.Run(id), fs: e.FS} }

func (d runDir) file(name string) string { return filepath.Join(d.path, name) }

// read returns the record, empty if there is none.
func (d runDir) read() record {
	data, err := os.ReadFile(d.file(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}
	}
	var r record
	if err != nil || json.Unmarshal(data, &r) != nil {
		return record{damaged: true}
	}
	return r
}

// write replaces the record.
func (d runDir) write(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return d.replace(recordFile, append(data, '\n'))
}

// replace writes a file whole, unflushed.
func (d runDir) replace(name string, data []byte) error {
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
	if err := d.fs.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("prepare the run directory: %w", err)
	}
	for _, entry := range entries {
		if keeps(entry.Name()) || !entry.Type().IsRegular() {
			continue
		}
		if err := d.fs.Remove(d.file(entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("prepare the run directory: %w", err)
		}
	}
	return nil
}

// keeps names the files that are not of one run: the record, which is replaced,
// what belongs to a worker, which makes several, and what belongs to the thread.
func keeps(name string) bool {
	return name == recordFile || name == workFile || name == logFile || name == totalsFile
}

// lock takes the lock that the agent will inherit.
func (d runDir) lock(ctx context.Context, patience time.Duration) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return durable.Lock(ctx, d.file(lockFile))
}

// alive reports whether the lock is held: by the agent, or by the engine that
// is starting or judging it.
func (d runDir) alive() bool {
	held, err := durable.TryLock(d.file(lockFile))
	if err == nil {
		_ = held.Unlock()
	}
	return errors.Is(err, durable.ErrLocked)
}

// surelyAlive is alive, not mistaken when somebody else probes at that moment.
func (d runDir) surelyAlive(ctx context.Context) bool {
	held, err := d.lock(ctx, probePatience)
	if err == nil {
		_ = held.Unlock()
	}
	return errors.Is(err, durable.ErrLocked)
}

// finished reads the result that an agent has left, if it has left one that
// names a step.
func (d runDir) finished() (protocol.Result, bool) {
	r, err := agentproc.ReadResult(d.path)
	return r, err == nil && r.StepHash != ""
}

// requestStop asks the engine of a run not to go on after it.
func (d runDir) requestStop(r record) error {
	return d.replace(stopFile, []byte(r.id()))
}

// stopRequested reports whether this very run was asked to stop.
func (d runDir) stopRequested(r record) bool {
	data, err := os.ReadFile(d.file(stopFile))
	return err == nil && string(data) == r.id()
}
