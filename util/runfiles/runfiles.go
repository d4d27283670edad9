// Package runfiles knows the files of a run directory, <home>/runs/<thread>: the step in
// flight of a thread, or its last one. The engine writes them; the agent's side, the
// collector and the checks read what is theirs to know through this package. An agent
// can put anything there, so nothing is followed and everything is bounded.
package runfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
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
// [safeopen.ReadFile].
func (d Dir) Read(name string, max int64) ([]byte, error) {
	if d == "" {
		return nil, fs.ErrNotExist
	}
	return safeopen.ReadFile(d.File(name), max, safeopen.NoFollow)
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

// MailboxDir holds what people tell a thread, a file each. A file that an agent was told
// of has the head in its name that the step follows which it was told in.
const MailboxDir = "mailbox"

// Bounds of a mailbox.
const (
	MaxMessage  = 64 << 10       // bytes of a text
	maxFile     = 7 * MaxMessage // a byte is up to six in JSON
	maxMessages = 100
	unread      = ".json"
	told        = ".told"
)

// ErrFull means that nobody reads what people say.
var ErrFull = errors.New("the mailbox is full")

// Message is what somebody has told a thread.
type Message struct {
	Text string `json:"text"`
	AtMs int64  `json:"atMs"`

	name string
}

func (d Dir) mail(name string) string { return filepath.Join(string(d), MailboxDir, name) }

// Post puts a letter into the mailbox, durably; key tells letters of one moment apart.
func (d Dir) Post(fsys durable.FS, l Message, key string) (name string, err error) {
	if len(d.names()) >= maxMessages {
		return "", ErrFull
	}
	data, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	if err := fsys.MkdirAll(d.mail(""), 0o700); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%015d-%s%s", l.AtMs, key, unread)
	return name, durable.WriteFile(fsys, d.mail(name), data, 0o600)
}

// Withdraw takes a letter back; false: it was read.
func (d Dir) Withdraw(name string) bool { return os.Remove(d.mail(name)) == nil }

// names are the files of the mailbox, oldest first. A link in its place is none.
func (d Dir) names() []string {
	if info, err := os.Lstat(d.mail("")); d == "" || err != nil || !info.IsDir() {
		return nil
	}
	entries, err := os.ReadDir(d.mail(""))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), 10*maxMessages)] {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Unread are the letters that no agent was told of, oldest first. A file that is not one
// stays where it is.
func (d Dir) Unread() []Message {
	var letters []Message
	for _, name := range d.names() {
		if !strings.HasSuffix(name, unread) {
			continue
		}
		data, err := safeopen.ReadFile(d.mail(name), maxFile, safeopen.NoFollow)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		l := Message{name: name}
		if err == nil && json.Unmarshal(data, &l) == nil && l.Text != "" {
			letters = append(letters, l)
		}
	}
	return letters
}

// MarkDelivered notes that an agent was told of a letter, in the step that follows head.
func (d Dir) MarkDelivered(l Message, head protocol.Hash) error {
	return os.Rename(d.mail(l.name), d.mail(strings.TrimSuffix(l.name, unread)+"."+string(head)+told))
}

// SettleMail judges what agents were told of, before the next one begins with the step
// that follows head: in a step that was made, it is done with. A try of this very step
// that failed knows it only if its conversation goes on; else it is to be told again.
func (d Dir) SettleMail(head protocol.Hash, goesOn bool) error {
	var errs []error
	for _, name := range d.names() {
		rest, was := strings.CutSuffix(name, told)
		if !was {
			continue
		}
		key, now := strings.CutSuffix(rest, "."+string(head))
		var err error
		switch {
		case !now:
			err = os.Remove(d.mail(name))
		case !goesOn:
			err = os.Rename(d.mail(name), d.mail(key+unread))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Try is a line of [TriesFile]: a try at the step that comes next, which failed.
type Try struct {
	protocol.Try
	Visit string               `json:"visit"` // the same for all tries of a visit
	Alias string               `json:"alias"` // of the agent, or its command line
	Kind  protocol.FailureKind `json:"kind,omitempty"`
	// GaveUp: the agent is not to be tried again for this visit.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// Tries are failed ones, oldest first.
type Tries []Try

const (
	maxTriesFile = 4 << 20 // bytes
	maxTries     = 50      // kept apart; of more the oldest are one
)

// Tries are those that no step holds yet; done are those of the newest step: whoever
// was killed after that was made has left them here, too. A line that cannot be read is a
// try of which nobody knows what it has cost.
func (d Dir) Tries(done []protocol.Try) Tries {
	data, err := d.Read(TriesFile, maxTriesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		data = []byte(err.Error())
	}
	var tries Tries
	for line := range bytes.Lines(data) {
		var t Try
		known := func(other protocol.Try) bool { return other.AtMs == t.AtMs && other.Error == t.Error }
		if json.Unmarshal(line, &t) != nil || t.Usage.Plausible() != nil {
			t = unreadTry()
		}
		if !slices.ContainsFunc(done, known) {
			tries = append(tries, t)
		}
	}
	return tries
}

// unreadTry is the try that a line was which cannot be read.
func unreadTry() Try {
	return Try{Try: protocol.Try{
		Error: fmt.Sprintf("its line in %s cannot be read", TriesFile),
		Usage: &protocol.Usage{Turns: 1}, // unknown, not none
	}}
}

// Add adds a try. When there are many, the two oldest become one, so that no cost is
// lost and no step grows without end.
func (t Tries) Add(try Try) Tries {
	t = append(slices.Clone(t), try)
	for len(t) > maxTries {
		var both protocol.Bill
		both.Add(t[0].Usage)
		both.Add(t[1].Usage)
		t[1].Usage = both.Usage()
		t[1].Error = fmt.Sprintf("and others before: %.200s", t[1].Error)
		t = t[1:]
	}
	return t
}

// GaveUp are the agents that are not to be tried again for a visit.
func (t Tries) GaveUp(visit string) (aliases []string) {
	for _, try := range t {
		if try.Visit == visit && try.GaveUp {
			aliases = append(aliases, try.Alias)
		}
	}
	return aliases
}

// Lines are the tries as the file holds them.
func (t Tries) Lines() ([]byte, error) {
	var out []byte
	for _, try := range t {
		line, err := json.Marshal(try)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// InStep are the tries as the step holds them that they led to.
func (t Tries) InStep() []protocol.Try {
	var out []protocol.Try
	for _, try := range t {
		out = append(out, try.Try)
	}
	return out
}
