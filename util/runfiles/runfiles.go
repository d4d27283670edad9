// Package runfiles knows the files of a run directory, <home>/runs/<thread>: the step in
// flight of a thread, or its last one. The engine writes them; the agent's side, the
// collector and the checks read what is theirs to know through this package. An agent
// can put anything there, so nothing is followed and everything is bounded.
package runfiles

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// The files of a run directory.
const (
	RecordFile    = "run.json"
	LockFile      = "agent.lock"        // held while the agent, or who started it, is alive
	StdoutFile    = "stdout"            // the agent's
	StderrFile    = "stderr"            // the agent's
	OutputFile    = "output"            // what a command prints that is no agent
	EndedFile     = "ended.json"        // how a command has ended that ran in namespaces
	ResultFile    = "result.json"       // the result line once more
	StopFile      = "stop"              // names the run that is to stop
	HoldFile      = "hold"              // no more children of the thread shall begin
	WorkFile      = "work.json"         // what a background worker is to do, or did last
	LogFile       = "worker.log"        // the worker's stderr
	TotalsFile    = "totals.json"       // what the thread has cost so far
	IndexFile     = "index"             // git's, of the thread's files as they were last kept
	IndexNoteFile = IndexFile + ".json" // what that holds, and which commit keeps it
	IntentFile    = "intent.json"       // what is about to change: head, files and facts together
	RestoreFile   = "restore.json"      // the worktree is being made, or its files are being put back
	SetupFile     = "setup.log"         // what workspace.setup has printed
	TriesFile     = "tries.jsonl"       // failed tries at the step that comes next
)

// MaxRecord bounds the record of a run, in bytes.
const MaxRecord = 1 << 20

// Dir is the path of a run directory; "" is none.
type Dir string

// Outlasts reports whether the run's command notes by itself how it ends, so that nobody need wait
// for it.
func (d Dir) Outlasts() bool {
	_, err := os.Lstat(d.File(EndedFile))
	return err == nil
}

// File is the path of one of its files.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// Read reads a file of at most max bytes. Errors: [fs.ErrNotExist], those of
// [careful.ReadFile].
func (d Dir) Read(name string, max int64) ([]byte, error) {
	if d == "" {
		return nil, fs.ErrNotExist
	}
	return careful.ReadFile(d.File(name), max, careful.NoFollow)
}

// Record is what others than the engine may know of a run.
type Record struct {
	Head      protocol.Hash `json:"head"`      // that the step follows
	StepHash  protocol.Hash `json:"stepHash"`  // that was made, or rejected
	Status    string        `json:"status"`    // starting, running, done, failed, rejected or stopped
	Cwd       string        `json:"cwd"`       // of the agent
	StartedAt int64         `json:"startedAt"` // ms
}

// Record reads run.json; the zero value if there is none, or if it is damaged.
func (d Dir) Record() Record {
	data, err := d.Read(RecordFile, MaxRecord)
	var r Record
	if err != nil || json.Unmarshal(data, &r) != nil {
		return Record{}
	}
	return r
}

// Began is when the run began, the zero time if that is not known.
func (r Record) Began() time.Time {
	if r.StartedAt <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.StartedAt)
}

// Alive reports whether the agent's lock is held. It makes no file.
func (d Dir) Alive() (bool, error) {
	if info, err := os.Lstat(d.File(LockFile)); err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // there is none
	}
	return durable.Locked(d.File(LockFile))
}
