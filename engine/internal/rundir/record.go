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

// Record is run.json: the step in flight of a thread, or the last one that was
// tried. It is about one head; once the head has moved it is history.
//
// No promise depends on it after a power cut: nothing that it describes is then
// still running, and a finished result that it does not name is run again. So
// it is replaced atomically but not flushed.
type Record struct {
	Thread     string        `json:"thread"`
	Workflow   protocol.Hash `json:"workflow"`
	Head       protocol.Hash `json:"head"` // that the step follows
	Role       string        `json:"role"`
	Agent      string        `json:"agent"`   // as the user named it
	Command    []string      `json:"command"` // program and configured arguments, variables as names
	PromptHash protocol.Hash `json:"promptHash"`
	LimitBase  int           `json:"limitBase"`
	Resumes    bool          `json:"resumes,omitempty"`   // the step answers a suspension or reopens the thread
	Replaces   bool          `json:"replaces,omitempty"`  // the step takes the place of Head: it follows what Head follows
	KeepFiles  bool          `json:"keepFiles,omitempty"` // a step that is made again begins with the files that are there
	Intents    bool          `json:"intents,omitempty"`   // whoever has started it keeps an intent while files are laid for it
	More       bool          `json:"more,omitempty"`      // the engine means to make another step after this one
	Cwd        string        `json:"cwd"`
	Snapshot   string        `json:"snapshot,omitempty"` // of the files before the step, as an agent is told of it
	// Granted are the secrets that a command was given, by variable, as [Fingerprint]: what it has printed is shown and
	// kept only where they are known, so that they can be hidden.
	Granted   map[string]string `json:"granted,omitempty"`
	Engine    int               `json:"engine"`          // process id of the stepping process
	Pid       int               `json:"pid"`             // of the agent and its group; 0: not started, or not yet known
	Birth     string            `json:"birth,omitempty"` // of Pid, see [proc.Birth]
	StartedAt int64             `json:"startedAt"`       // ms
	Status    Status            `json:"status"`
	Error     *Error            `json:"error,omitempty"`
	Exhausted bool              `json:"exhausted,omitempty"` // it failed, and nothing is left that its policy would try
	StepHash  protocol.Hash     `json:"stepHash,omitempty"`  // added, or rejected
	Reason    string            `json:"reason,omitempty"`    // of a rejection

	// Damaged: there is a record, but it cannot be read. missing: there is none.
	// Then nothing else of it is known.
	Damaged, Missing bool `json:"-"`
}

// Fingerprints are those of the variables that a command of a thread is given, by name; nil: none is set.
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

// Fingerprint tells a secret from another one of the same thread, and does not give it away.
func Fingerprint(thread, value string) string {
	sum := sha256.Sum256([]byte(thread + "\x00" + value))
	return hex.EncodeToString(sum[:])
}

// Secrets adds to a set what must be hidden in what the command has printed: the config may not grant it any more.
func (r Record) Secrets(set *secret.Set, e env.Env) *secret.Set {
	for name := range r.Granted {
		set.Add(e.Get(name))
	}
	return set
}

// UsedUp reports whether the run has failed at a head, and nothing is left to try.
func (r Record) UsedUp(head protocol.Hash) bool {
	return r.Head == head && r.Exhausted && (r.Status == Failed || r.Status == Rejected)
}

// Lacks returns a secret that the command was given and that e does not have as it was; "": none.
func (r Record) Lacks(e env.Env) string {
	for _, name := range slices.Sorted(maps.Keys(r.Granted)) {
		if Fingerprint(r.Thread, e.Get(name)) != r.Granted[name] {
			return name
		}
	}
	return ""
}

// Error is why a run led to no step.
type Error struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
}

// runStatus is how far a run has come.
type Status string

// While a run is starting or running its agent may be alive, or may have left a
// result. The other statuses are final: neither is asked any more.
const (
	Starting Status = "starting" // the agent's process may exist, its id is not recorded
	Running  Status = "running"
	Done     Status = "done"     // StepHash is the new head
	Failed   Status = "failed"   // Error says why
	Rejected Status = "rejected" // the agent's step StepHash is not what was asked for
	Stopped  Status = "stopped"  // by a person
)

// decodeRecord reads a record.
func decodeRecord(data []byte) Record {
	var r Record
	known := []Status{Starting, Running, Done, Failed, Rejected, Stopped}
	if json.Unmarshal(data, &r) != nil || r.Thread == "" || r.Role == "" || !r.Head.Valid() ||
		!slices.Contains(known, r.Status) {
		return Record{Damaged: true}
	}
	return r
}

// InFlight: the agent may be alive, or may have left a result.
func (s Status) InFlight() bool { return s == Starting || s == Running }

// AgentEnded reports whether the recorded process is known to have ended, be it that
// nobody has waited for it yet.
func (r Record) AgentEnded() bool { return r.Birth != "" && !proc.Lives(r.Pid, r.Birth) }

// AgentPid is the agent's process id, 0 if it is not known, or if the agent has
// ended and its id belongs to another process by now.
func (r Record) AgentPid() int {
	if proc.Reused(r.Pid, r.Birth) {
		return 0
	}
	return r.Pid
}

// AgentLives reports whether the recorded process is there. Elsewhere than on Linux
// it is not known.
func (r Record) AgentLives() bool {
	return r.Status.InFlight() && proc.Lives(r.Pid, r.Birth)
}

// Unfinished reports whether the record is of a run from this head whose end
// nobody has seen. A record that cannot be read may be one.
func (r Record) Unfinished(head protocol.Hash) bool {
	return r.Damaged || (r.Head == head && r.Status.InFlight())
}

// Between reports whether the run has led to its step, whether or not this head,
// which was read before, is that already, and its engine meant to go on.
func (r Record) Between(head protocol.Hash) bool {
	return r.More && (r.Status == Done || (r.Status.InFlight() && r.Head != head))
}

// ByPerson reports whether the run, from this head, was asked for in a person's
// words, and nobody has seen its end.
func (r Record) ByPerson(head protocol.Hash) bool {
	return (r.Resumes || r.Replaces) && r.Unfinished(head)
}

// ID names one run among all of a thread's.
func (r Record) ID() string { return fmt.Sprintf("%d-%d", r.StartedAt, r.Engine) }

// Intent is intent.json: what a change of a thread that needs several effects is on its way to.
// It is durable before the first file changes, and removed last. Found again, the change was
// cut off.
type Intent struct {
	Kind     IntentKind    `json:"kind"`
	HeadFrom protocol.Hash `json:"headFrom"`
	HeadTo   protocol.Hash `json:"headTo,omitempty"` // of a move
	// TreeFrom are the files before the change, and TreeTo those after it; "": they stay as they are.
	TreeFrom protocol.Tree `json:"treeFrom,omitempty"`
	TreeTo   protocol.Tree `json:"treeTo,omitempty"`
	// What a move changes of the facts.
	Undone    []protocol.Hash `json:"undone,omitempty"`
	Attempts  map[string]int  `json:"attempts,omitempty"`
	KeepFiles bool            `json:"keepFiles,omitempty"`
}

// IntentKind is what an intent is about.
type IntentKind string

// The kinds of intent.
const (
	Moving   IntentKind = "moving"   // head and files are on their way to another step
	Prepared IntentKind = "prepared" // the files are laid out for a step that does not exist yet
)

const maxIntent = 1 << 20

// Intent reads the intent; the zero value: there is none. One that an older program left as
// restore.json counts as prepared: it says only which files were being put back. Errors: it
// cannot be read, so nobody knows which files the thread has.
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

// cutRestore reads the record of a restore that an older program was killed in. The plan of a
// worktree is in a file of the same name, and names its repository.
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

// CutOff reports whether there is an intent. It costs two looks where there is none.
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
		return fmt.Errorf("record what is about to change: %w", err)
	}
	return nil
}

// DropIntent removes the intent, and what an older program has left of one.
func (d Dir) DropIntent() error {
	names := []string{runfiles.IntentFile}
	if cut, _ := d.cutRestore(); cut.Kind != "" {
		names = append(names, runfiles.RestoreFile)
	}
	for _, name := range names {
		if _, err := os.Lstat(d.File(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.FS.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
