package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// Record is run.json: the step in flight of a thread, or the last one that was tried. It applies to one head,
// and is out of date once the head has moved.
//
// Nothing depends on it after a power failure: nothing that it describes is still running then, and a
// finished result that it doesn't mention is run again. So it isn't flushed. It is the last line of its file.
type Record struct {
	Thread     string        `json:"thread"`
	Workflow   protocol.Hash `json:"workflow"`
	Head       protocol.Hash `json:"head"` // head that the step follows
	Role       string        `json:"role"`
	Agent      string        `json:"agent"`   // as the user specified it
	Command    []string      `json:"command"` // program and configured arguments, without expanded variables
	PromptHash protocol.Hash `json:"promptHash"`
	LimitBase  int           `json:"limitBase"`
	Resumes    bool          `json:"resumes,omitempty"`   // the step answers a suspension or reopens the thread
	Replaces   bool          `json:"replaces,omitempty"`  // the step replaces Head, and follows Head's predecessor
	KeepFiles  bool          `json:"keepFiles,omitempty"` // a retried step starts with the current files
	Intents    bool          `json:"intents,omitempty"`   // the engine records an intent while it writes files for the step
	More       bool          `json:"more,omitempty"`      // the engine will make another step after this one
	Cwd        string        `json:"cwd"`
	Snapshot   string        `json:"snapshot,omitempty"` // snapshot settings passed to the agent, with the files before the step
	// Granted holds the [Fingerprint] of each secret variable that a command received. Its output is shown
	// and stored only if the secrets are still known, so that they can be removed from it.
	Granted   map[string]string `json:"granted,omitempty"`
	Engine    int               `json:"engine"`          // process ID of the stepping process
	Pid       int               `json:"pid"`             // process ID and group of the agent; 0 if not started or unknown
	Birth     string            `json:"birth,omitempty"` // birth of Pid, see [proc.Birth]
	StartedAt int64             `json:"startedAt"`       // Unix milliseconds
	Status    Status            `json:"status"`
	Error     *Error            `json:"error,omitempty"`
	Exhausted bool              `json:"exhausted,omitempty"` // failed, and the policy allows no further try
	StepHash  protocol.Hash     `json:"stepHash,omitempty"`  // the added or rejected step
	Reason    string            `json:"reason,omitempty"`    // why it was rejected

	// Damaged means that the record is unreadable, and Missing that there is none. The other fields are unset
	// then.
	Damaged, Missing bool `json:"-"`
}

// Fingerprints returns the fingerprints of a command's variables by name, or nil if none is set.
func Fingerprints(thread string, e env.Env, names []string) map[string]string {
	var all map[string]string
	for _, name := range names {
		if value := e.Get(name); value != "" {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = Fingerprint(thread, value)
		}
	}
	return all
}

// Fingerprint returns a hash that distinguishes the secrets of a thread without revealing them.
func Fingerprint(thread, value string) string {
	sum := sha256.Sum256([]byte(thread + "\x00" + value))
	return hex.EncodeToString(sum[:])
}

// Secrets adds the secrets to remove from the command's output to a set. The config may no longer grant them.
func (r Record) Secrets(set *secret.Set, e env.Env) *secret.Set {
	for name := range r.Granted {
		set.Add(e.Get(name))
	}
	return set
}

// UsedUp reports whether the run failed at a head and its retries are exhausted.
func (r Record) UsedUp(head protocol.Hash) bool {
	return r.Head == head && r.Exhausted && (r.Status == Failed || r.Status == Rejected)
}

// Lacks returns the name of a secret that the command received and that is missing or different in e; "" if
// none.
func (r Record) Lacks(e env.Env) string {
	for _, name := range slices.Sorted(maps.Keys(r.Granted)) {
		if Fingerprint(r.Thread, e.Get(name)) != r.Granted[name] {
			return name
		}
	}
	return ""
}

// Error is the reason why a run made no step.
type Error struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
}

// Status is the state of a run.
type Status string

// While a run is Starting or Running, its agent may be alive or may have left a result. The other states are
// final.
const (
	Starting Status = "starting" // the agent's process may exist, but its ID is not recorded
	Running  Status = "running"
	Done     Status = "done"     // StepHash is the new head
	Failed   Status = "failed"   // see Error
	Rejected Status = "rejected" // the agent's step StepHash is invalid
	Stopped  Status = "stopped"  // by a user
)

func decodeRecord(data []byte) Record {
	var r Record
	known := []Status{Starting, Running, Done, Failed, Rejected, Stopped}
	if json.Unmarshal(durable.LastLine(data), &r) != nil || r.Thread == "" || r.Role == "" || !r.Head.Valid() ||
		!slices.Contains(known, r.Status) {
		return Record{Damaged: true}
	}
	return r
}

// InFlight reports whether the agent may be alive or may have left a result.
func (s Status) InFlight() bool { return s == Starting || s == Running }

// AgentEnded reports whether the recorded process is known to have ended, even if it is still a zombie.
func (r Record) AgentEnded() bool { return r.Birth != "" && !proc.Lives(r.Pid, r.Birth) }

// AgentPid returns the agent's process ID. It returns 0 if it is unknown, or if another process has the ID by
// now.
func (r Record) AgentPid() int {
	if proc.Reused(r.Pid, r.Birth) {
		return 0
	}
	return r.Pid
}

// AgentLives reports whether the recorded process is alive. It returns false if that is unknown, as on
// systems other than Linux.
func (r Record) AgentLives() bool {
	return r.Status.InFlight() && proc.Lives(r.Pid, r.Birth)
}

// Unfinished reports whether the record describes a run from this head whose end is not recorded. An
// unreadable record may be one.
func (r Record) Unfinished(head protocol.Hash) bool {
	return r.Damaged || (r.Head == head && r.Status.InFlight())
}

// Between reports whether the run has made its step and the engine will make another one. head was read
// before the record, so it may be the step or its predecessor.
func (r Record) Between(head protocol.Hash) bool {
	return r.More && (r.Status == Done || (r.Status.InFlight() && r.Head != head))
}

// ID returns an identifier that is unique among the thread's runs.
func (r Record) ID() string { return fmt.Sprintf("%d-%d", r.StartedAt, r.Engine) }

// Intent is intent.json. It describes a change of a thread that needs several steps. It is made durable
// before the first file changes, and removed last. If it is still there later, the change was interrupted.
type Intent struct {
	Kind     IntentKind    `json:"kind"`
	HeadFrom protocol.Hash `json:"headFrom"`
	HeadTo   protocol.Hash `json:"headTo,omitempty"` // for a move
	// TreeFrom holds the files before the change, and TreeTo those after it; "" means that they stay.
	TreeFrom protocol.Tree `json:"treeFrom,omitempty"`
	TreeTo   protocol.Tree `json:"treeTo,omitempty"`
	// Facts that a move changes.
	Undone    []protocol.Hash `json:"undone,omitempty"`
	Attempts  map[string]int  `json:"attempts,omitempty"`
	KeepFiles bool            `json:"keepFiles,omitempty"`
}

// IntentKind is the kind of an intent.
type IntentKind string

// Kinds of intents.
const (
	Moving   IntentKind = "moving"   // the head and files are being moved to another step
	Prepared IntentKind = "prepared" // the files were written for a step that doesn't exist yet
)

const maxIntent = 1 << 20

// Intent reads the intent, or returns the zero value if there is none. A restore.json from an older version
// counts as prepared, since it contains only the files to restore. An error means that it is unreadable, so
// it is unknown which files the thread has.
func (d Dir) Intent() (Intent, error) {
	var i Intent
	data, err := d.ReadFile(runfiles.IntentFile, maxIntent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.cutRestore()
	case err == nil && (json.Unmarshal(data, &i) != nil || i.Kind == ""):
		err = errors.New("it is damaged")
	}
	if err != nil {
		return i, fmt.Errorf("read %s: %w", d.File(runfiles.IntentFile), err)
	}
	return i, nil
}

// cutRestore reads the record of a restore that was interrupted in an older version. The plan of a worktree
// has the same file name, but contains its repository.
func (d Dir) cutRestore() (Intent, error) {
	data, err := d.ReadFile(runfiles.RestoreFile, maxIntent)
	if errors.Is(err, fs.ErrNotExist) {
		return Intent{}, nil
	}
	var cut struct {
		From, To protocol.Tree
		Repo     string
	}
	if err == nil {
		err = json.Unmarshal(data, &cut)
	}
	if err != nil || cut.Repo != "" {
		return Intent{}, nil //nolint:nilerr // opening the files reports the error
	}
	return Intent{Kind: Prepared, TreeFrom: cut.From, TreeTo: cut.To}, nil
}

// CutOff reports whether there is an intent. Without one, it costs two file lookups.
func (d Dir) CutOff() bool {
	_, none := os.Lstat(d.File(runfiles.IntentFile))
	_, old := os.Lstat(d.File(runfiles.RestoreFile))
	if none != nil && old != nil {
		return false
	}
	i, err := d.Intent()
	return err != nil || i.Kind != ""
}

// SetIntent makes an intent durable.
func (d Dir) SetIntent(i Intent) error {
	data, err := json.Marshal(i)
	if err == nil {
		err = d.Make()
	}
	if err == nil {
		err = d.free(runfiles.IntentFile)
	}
	if err == nil {
		err = durable.WriteFile(d.FS, d.File(runfiles.IntentFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("record the pending change: %w", err)
	}
	return nil
}

// DropIntent removes the intent, including one of an older version.
func (d Dir) DropIntent() error {
	names := []string{runfiles.IntentFile}
	if cut, _ := d.cutRestore(); cut.Kind != "" {
		names = append(names, runfiles.RestoreFile)
	}
	for _, name := range names {
		if err := d.remove(name); err != nil {
			return err
		}
	}
	return nil
}
