package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Facts is what is known of a thread besides its chain. A field that is not set is
// not known. Each line of facts.jsonl is one change: its fields take the place of
// those before, null takes one away, and what this program does not know stays.
type Facts struct {
	Imported  *Imported         `json:"imported,omitempty"`
	Title     *string           `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Fork      *Fork             `json:"fork,omitempty"`
	Parent    *Parent           `json:"parent,omitempty"`
	Attempts  map[string]int    `json:"attempts,omitempty"` // by "<head>/<role>"
	Workspace *Workspace        `json:"workspace,omitempty"`
	Undone    []protocol.Hash   `json:"undone,omitempty"`
	Limits    json.RawMessage   `json:"limits,omitempty"`
	// ParkedUntil is in ms.
	ParkedUntil int64   `json:"parkedUntil,omitempty"`
	Remote      *Remote `json:"remote,omitempty"`
}

// Imported says that a thread was brought in from elsewhere.
type Imported struct {
	From string `json:"from"` // the file, as it was named
	AtMs int64  `json:"atMs"`
	// Confirmed: a person has said in which directory it may work here.
	Confirmed bool `json:"confirmed,omitempty"`
	// Inherited: the thread itself was made here, as a fork of such a thread.
	Inherited bool `json:"inherited,omitempty"`
}

// Fork is what a thread was forked from.
type Fork struct {
	Thread string        `json:"thread,omitempty"` // "": not known
	Step   protocol.Hash `json:"step"`
}

// Parent is the step whose part a thread is.
type Parent struct {
	Thread  string        `json:"thread"`
	Head    protocol.Hash `json:"head"`
	Role    string        `json:"role"`
	Key     string        `json:"key"`
	Attempt int           `json:"attempt"`
}

// Workspace is where a thread works on this machine. It takes the place of the
// directory that its start names.
type Workspace struct {
	Mode   string `json:"mode"` // "none": the directory as it is
	Root   string `json:"root"` // absolute
	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// Remote is where a thread was last pushed to.
type Remote struct {
	Name string        `json:"name"`
	Head protocol.Hash `json:"head"`
	AtMs int64         `json:"atMs"`
}

// Foreign reports whether the thread comes from elsewhere, and nobody has said yet
// where it may work here.
func (f Facts) Foreign() bool { return f.Imported != nil && !f.Imported.Confirmed }

// StartedHere reports whether the thread was made in this home.
func (f Facts) StartedHere() bool { return f.Imported == nil || f.Imported.Inherited }

// maxFacts bounds a line, in bytes.
const maxFacts = 1 << 20

// Facts returns what is known of a thread, active or not; nothing is no error. It
// costs a home without facts one failed open.
func (x *Index) Facts(ctx context.Context, thread string) (Facts, error) {
	if err := ctx.Err(); err != nil {
		return Facts{}, err
	}
	data, err := x.readLog(factsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Facts{}, nil
	}
	if err != nil {
		return Facts{}, err
	}
	quoted, err := json.Marshal(thread)
	if err != nil {
		return Facts{}, err
	}
	known := fields{}
	for _, line := range linesWith(data, quoted) {
		change, err := read(line.text, line.whole, parseFacts)
		switch {
		case errors.Is(err, errNothing):
		case err != nil:
			number := bytes.Count(data[:line.offset], []byte("\n")) + 1
			return Facts{}, invalid(x.path(factsFile), number, err.Error())
		case change.thread == thread:
			known.merge(change.fields)
		}
	}
	return known.facts()
}

// AllFacts returns what is known of all threads; most have no entry. With an error
// for lines that cannot be read it returns what the others say.
func (x *Index) AllFacts(ctx context.Context) (map[string]Facts, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := x.readLog(factsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	merged, faults := map[string]fields{}, []error(nil)
	for line := range linesOf(data, parseFacts) {
		switch change := line.value; {
		case line.err != nil:
			faults = append(faults, invalid(x.path(factsFile), line.number, line.err.Error()))
		case merged[change.thread] == nil:
			merged[change.thread] = change.fields
		default:
			merged[change.thread].merge(change.fields)
		}
	}
	all := make(map[string]Facts, len(merged))
	for thread, known := range merged {
		if all[thread], err = known.facts(); err != nil {
			return all, err // each line could be read, so this cannot be
		}
	}
	return all, errors.Join(faults...)
}

// SetFacts adds to what is known of a thread: each field of the change that is set
// takes the place of what was known.
func (x *Index) SetFacts(ctx context.Context, thread string, change Facts) error {
	return x.locked(ctx, threadsLock, func() error {
		return x.appendFacts(map[string]Facts{thread: change})
	})
}

// appendFacts adds lines durably, under the lock of the threads.
func (x *Index) appendFacts(changes map[string]Facts) error {
	var text []byte
	for _, thread := range slices.Sorted(maps.Keys(changes)) {
		line, err := factsLine(thread, changes[thread])
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	if len(text) == 0 {
		return nil
	}
	start, err := x.mendTail(factsFile, isFacts)
	if err != nil {
		return err
	}
	return durable.AppendFile(x.fsys, x.path(factsFile), append(start, text...), privateFile)
}

func isFacts(line []byte) error {
	_, err := parseFacts(line)
	return err
}

// privateFile is the mode of a file that says where somebody works.
const privateFile = 0o600

// factsLine is a change as a line, with its end; nothing if it says nothing.
func factsLine(thread string, change Facts) ([]byte, error) {
	data, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("facts of thread %s: %w", thread, err)
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if len(f) == 0 {
		return nil, nil
	}
	return f.line(thread)
}

// fields are what a line says beside the thread.
type fields map[string]json.RawMessage

// merge adds a later change.
func (f fields) merge(change fields) { maps.Copy(f, change) }

// facts reads the fields that this program knows.
func (f fields) facts() (Facts, error) {
	var out Facts
	if len(f) == 0 {
		return out, nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(data, &out)
}

// line writes fields as a line; null is left out of what is written anew.
func (f fields) line(thread string) ([]byte, error) {
	name, err := json.Marshal(thread)
	if err != nil {
		return nil, err
	}
	line := append([]byte(`{"thread":`), name...)
	for _, key := range slices.Sorted(maps.Keys(f)) {
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		line = append(append(append(append(line, ','), quoted...), ':'), f[key]...)
	}
	if line = summed(append(line, '}')); len(line) > maxFacts {
		return nil, fmt.Errorf("facts of thread %s: %d bytes are more than fit", thread, len(line))
	}
	return line, nil
}

// factsChange is one line.
type factsChange struct {
	thread string
	fields fields
}

// parseFacts reads a line. Its known fields must have their types.
func parseFacts(line []byte) (factsChange, error) {
	if isBlank(line) {
		return factsChange{}, errNothing
	}
	if len(line) > maxFacts {
		return factsChange{}, fmt.Errorf("%d bytes are more than a line of facts has", len(line))
	}
	var f fields
	if err := json.Unmarshal(line, &f); err != nil {
		return factsChange{}, fmt.Errorf("not a line of facts: %w", err)
	}
	var c factsChange
	if err := json.Unmarshal(f["thread"], &c.thread); err != nil || c.thread == "" {
		return factsChange{}, errors.New("names no thread")
	}
	if problem := threadProblem(c.thread); problem != "" {
		return factsChange{}, errors.New(problem)
	}
	if err := checkSum(line); err != nil {
		return factsChange{}, err
	}
	delete(f, "thread")
	delete(f, checkKey)
	c.fields = f
	if _, err := f.facts(); err != nil {
		return factsChange{}, fmt.Errorf("not a line of facts: %w", err)
	}
	return c, nil
}
