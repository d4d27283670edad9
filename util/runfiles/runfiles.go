// Package runfiles accesses the files of a run directory, <home>/runs/<thread>, which belongs to a thread's
// current or last step. The engine writes them; agents, the garbage collector and checks read the parts they
// need through this package. An agent can put anything there, so links aren't followed and all reads are
// bounded.
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
	LockFile      = "agent.lock"        // held while the agent, or the process that started it, is running
	StdoutFile    = "stdout"            // the agent's
	StderrFile    = "stderr"            // the agent's
	OutputFile    = "output"            // output of a command that isn't an agent
	EndedFile     = "ended.json"        // exit status of a command that ran in namespaces
	ResultFile    = "result.json"       // copy of the result line
	StopFile      = "stop"              // contains the run to stop
	HoldFile      = "hold"              // prevents starting further children of the thread
	WorkFile      = "work.json"         // current or last job of a background worker
	LogFile       = "worker.log"        // the worker's stderr
	TotalsFile    = "totals.json"       // usage of the thread so far
	IndexFile     = "index"             // git index of the thread's newest snapshot
	IndexNoteFile = IndexFile + ".json" // its content and commit
	IntentFile    = "intent.json"       // pending change of head, files and metadata
	RestoreFile   = "restore.json"      // the worktree is being created, or its files are being restored
	SetupFile     = "setup.log"         // output of workspace.setup
	TriesFile     = "tries.jsonl"       // failed attempts at the next step
)

// MaxRecord bounds the record of a run, in bytes.
const MaxRecord = 1 << 20

// Dir is the path of a run directory, or "".
type Dir string

// Outlasts reports whether the run's command records its own exit status, so that no process has to wait for
// it.
func (d Dir) Outlasts() bool {
	_, err := os.Lstat(d.File(EndedFile))
	return err == nil
}

// File returns the path of a file in it.
func (d Dir) File(name string) string { return filepath.Join(string(d), name) }

// Read reads a file of at most max bytes. Errors: [fs.ErrNotExist], and the errors of [safeopen.ReadFile].
func (d Dir) Read(name string, max int64) ([]byte, error) {
	if d == "" {
		return nil, fs.ErrNotExist
	}
	return safeopen.ReadFile(d.File(name), max, safeopen.NoFollow)
}

// Record is the part of a run's record that packages other than the engine use.
type Record struct {
	Head      protocol.Hash `json:"head"`      // that the step follows
	StepHash  protocol.Hash `json:"stepHash"`  // of the stored or rejected step
	Status    string        `json:"status"`    // starting, running, done, failed, rejected or stopped
	Cwd       string        `json:"cwd"`       // of the agent
	StartedAt int64         `json:"startedAt"` // ms
}

// Record reads run.json. It returns the zero value if the file is missing or damaged.
func (d Dir) Record() Record {
	data, err := d.Read(RecordFile, MaxRecord)
	var r Record
	if err != nil || json.Unmarshal(durable.LastLine(data), &r) != nil {
		return Record{}
	}
	return r
}

// StartTime returns the start time of the run, zero if unknown.
func (r Record) StartTime() time.Time {
	if r.StartedAt <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.StartedAt)
}

// Exists reports whether the directory exists. It restores the user's permissions, which an agent can have removed.
func (d Dir) Exists() bool {
	info, err := os.Lstat(string(d))
	if err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = os.Chmod(string(d), 0o700) // using it reports the failure
	}
	return err == nil && info.IsDir()
}

// Alive reports whether the agent's lock is held. It creates no file.
func (d Dir) Alive() (bool, error) {
	_ = d.Exists()
	info, err := os.Lstat(d.File(LockFile))
	if errors.Is(err, fs.ErrPermission) {
		return false, err
	}
	if err != nil || !info.Mode().IsRegular() {
		return false, nil //nolint:nilerr // there is none
	}
	return durable.Locked(d.File(LockFile))
}

// MailboxDir contains messages to a thread, one per file. The name of a delivered message includes the head
// of the step in which it was delivered.
const MailboxDir = "mailbox"

// Bounds of a mailbox.
const (
	MaxMessage  = 64 << 10       // bytes of a text
	maxFile     = 7 * MaxMessage // a byte takes up to six in JSON
	maxMessages = 100
	unread      = ".json"
	delivered   = ".told"
)

// ErrFull means that no agent reads the messages.
var ErrFull = errors.New("the mailbox is full")

// Message is a message to a thread.
type Message struct {
	Text string `json:"text"`
	AtMs int64  `json:"atMs"`

	name string
}

func (d Dir) mail(name string) string { return filepath.Join(string(d), MailboxDir, name) }

// Post durably adds a message to the mailbox; key distinguishes messages posted at the same time.
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

// Withdraw deletes an unread message; it returns false if the message was already read.
func (d Dir) Withdraw(name string) bool { return os.Remove(d.mail(name)) == nil }

// names returns the files of the mailbox, oldest first. A link in its place counts as empty.
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

// Unread returns the undelivered messages, oldest first. It ignores files that aren't messages.
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

// MarkDelivered records that a message was delivered in the step that follows head.
func (d Dir) MarkDelivered(l Message, head protocol.Hash) error {
	return os.Rename(d.mail(l.name), d.mail(strings.TrimSuffix(l.name, unread)+"."+string(head)+delivered))
}

// SettleMail updates delivered messages before the step that follows head starts: messages delivered in a
// completed step are removed. Those of a failed attempt at this step are delivered again unless its
// conversation continues.
func (d Dir) SettleMail(head protocol.Hash, continues bool) error {
	var errs []error
	for _, name := range d.names() {
		rest, was := strings.CutSuffix(name, delivered)
		if !was {
			continue
		}
		key, now := strings.CutSuffix(rest, "."+string(head))
		var err error
		switch {
		case !now:
			err = os.Remove(d.mail(name))
		case !continues:
			err = os.Rename(d.mail(name), d.mail(key+unread))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Try is a line of [TriesFile]: a failed attempt at the next step.
type Try struct {
	protocol.Try
	Visit string               `json:"visit"` // the same for all attempts of a visit
	Alias string               `json:"alias"` // of the agent, or its command line
	Kind  protocol.FailureKind `json:"kind,omitempty"`
	// GaveUp means that the agent must not be tried again in this visit.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// Tries lists failed attempts, oldest first.
type Tries []Try

const (
	maxTriesFile = 4 << 20 // bytes
	maxTries     = 50      // kept separately; beyond that the oldest are merged
)

// Tries returns the failed attempts that aren't part of a step yet. done lists those of the newest step,
// which stay in the file if the process is killed after storing the step. An unreadable line counts as an
// attempt with unknown usage.
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
			t = Try{Try: protocol.Try{
				Error: fmt.Sprintf("its line in %s is damaged", TriesFile),
				Usage: &protocol.Usage{Turns: 1}, // unknown rather than none
			}}
		}
		if !slices.ContainsFunc(done, known) {
			tries = append(tries, t)
		}
	}
	return tries
}

// Add adds an attempt. If there are too many, it merges the two oldest, so that the total usage is kept and
// steps don't grow without bound.
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

// GaveUp returns the agents that must not be tried again in a visit.
func (t Tries) GaveUp(visit string) (aliases []string) {
	for _, try := range t {
		if try.Visit == visit && try.GaveUp {
			aliases = append(aliases, try.Alias)
		}
	}
	return aliases
}

// Lines returns the content of the file.
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

// InStep returns the attempts in the form stored in the step.
func (t Tries) InStep() []protocol.Try {
	var out []protocol.Try
	for _, try := range t {
		out = append(out, try.Try)
	}
	return out
}
