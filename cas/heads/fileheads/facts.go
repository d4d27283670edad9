package fileheads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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

	// Doubt names a line that cannot be read and that may have said where the thread
	// comes from; nil: there is none, or a later line says it.
	Doubt error `json:"-"`
}

// Imported says that a thread was brought in from elsewhere.
type Imported struct {
	From string `json:"from"` // the file, as it was named
	AtMs int64  `json:"atMs"`
	// Confirmed: a person has said in which directory it may work here.
	Confirmed bool `json:"confirmed,omitempty"`
	// Inherited: the thread itself was made here, as a fork of such a thread, or has
	// gone on elsewhere since.
	Inherited bool `json:"inherited,omitempty"`
	// Lost: a line that may have said where the thread comes from is gone, so it may
	// also have been made here.
	Lost bool `json:"lost,omitempty"`
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

// Foreign reports whether the thread comes from elsewhere, or may do so, and nobody
// has said yet where it may work here.
func (f Facts) Foreign() bool {
	return f.Doubt != nil || f.Imported != nil && !f.Imported.Confirmed
}

// StartedHere reports whether the thread was made in this home.
func (f Facts) StartedHere() bool {
	return !f.Unclear() && (f.Imported == nil || f.Imported.Inherited)
}

// Unclear reports whether nobody knows any more if the thread was made in this home.
func (f Facts) Unclear() bool { return f.Doubt != nil || f.Imported != nil && f.Imported.Lost }

// maxFacts bounds a line, in bytes.
const maxFacts = 1 << 20

// Facts returns what is known of a thread, active or not; nothing is no error, and
// neither is a line that cannot be read: what it leaves open is the Doubt.
func (x *Index) Facts(ctx context.Context, thread string) (Facts, error) {
	data, err := x.factsText(ctx)
	if err != nil {
		return Facts{}, err
	}
	r, err := x.readFacts(ctx, data, thread)
	if err != nil {
		return Facts{}, err
	}
	return r.of(thread)
}

// AllFacts returns what is known of all threads; most have no entry. With an error
// for lines that cannot be read it returns what the others say.
func (x *Index) AllFacts(ctx context.Context) (map[string]Facts, error) {
	data, err := x.factsText(ctx)
	if err != nil {
		return nil, err
	}
	r, err := x.readFacts(ctx, data, "")
	if err != nil {
		return nil, err
	}
	all := make(map[string]Facts, len(r.known))
	for _, threads := range []iter.Seq[string]{maps.Keys(r.known), maps.Keys(r.doubts)} {
		for thread := range threads {
			if all[thread], err = r.of(thread); err != nil {
				return all, err // each line could be read, so this cannot be
			}
		}
	}
	return all, errors.Join(r.faults...)
}

// factsText is the file, nothing if there is none.
func (x *Index) factsText(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	data, err := x.readLog(factsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// SetFacts adds to what is known of a thread: each field of the change that is set
// takes the place of what was known.
func (x *Index) SetFacts(ctx context.Context, thread string, change Facts) error {
	return x.locked(ctx, threadsLock, func() error {
		return x.appendFacts(ctx, map[string]Facts{thread: change})
	})
}

// appendFacts adds lines durably, under the lock of the threads.
func (x *Index) appendFacts(ctx context.Context, changes map[string]Facts) error {
	text, err := factsLines(changes)
	if err != nil {
		return err
	}
	if done, err := x.mendFacts(ctx, text); done || len(text) == 0 || err != nil {
		return err
	}
	start, err := x.mendTail(factsFile, isFacts)
	if err != nil {
		return err
	}
	return durable.AppendFile(x.fsys, x.path(factsFile), append(start, text...), privateFile)
}

// factsLines are changes as lines.
func factsLines(changes map[string]Facts) (text []byte, err error) {
	for _, thread := range slices.Sorted(maps.Keys(changes)) {
		line, err := factsLine(thread, changes[thread])
		if err != nil {
			return nil, err
		}
		text = append(text, line...)
	}
	return text, nil
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
