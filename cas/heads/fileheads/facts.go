package fileheads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/durable"
)

// maxFacts bounds a line, in bytes.
const maxFacts = 1 << 20

// Facts returns what is known of a thread, active or not; nothing is no error, and
// neither is a line that cannot be read: what it leaves open is the Doubt.
func (x *Heads) Facts(ctx context.Context, thread string) (heads.Facts, error) {
	r, err := x.readFacts(ctx, thread)
	if err != nil {
		return heads.Facts{}, err
	}
	return r.of(thread)
}

// AllFacts returns what is known of all threads; most have no entry. With an error
// for lines that cannot be read it returns what the others say.
func (x *Heads) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	r, err := x.readFacts(ctx, "")
	if err != nil {
		return nil, err
	}
	all := make(map[string]heads.Facts, len(r.known))
	for _, threads := range []iter.Seq[string]{maps.Keys(r.known), maps.Keys(r.doubts)} {
		for thread := range threads {
			if all[thread], err = r.of(thread); err != nil {
				return all, err // each line could be read, so this cannot be
			}
		}
	}
	x.keepFacts(r)
	return all, errors.Join(r.faults...)
}

// maxKept bounds the lines of facts that are kept for the next look at all of them, in
// bytes.
const maxKept = 4 << 20

// keepFacts keeps lines that leave nothing in doubt. A run of many children asks for the
// facts of all with each step, and finds the same lines, or more.
func (x *Heads) keepFacts(r *factsRead) {
	if len(r.data) <= maxKept && bytes.HasSuffix(r.data, []byte("\n")) && len(r.faults)+len(r.doubts) == 0 && r.torn == nil {
		x.kept.Store(r)
	}
}

// readBefore is what the lines say with which a text begins, as far as they are kept: of
// none if they are asked for one thread.
func (x *Heads) readBefore(data []byte, only string) *factsRead {
	r := &factsRead{known: map[string]fields{}, doubts: map[string]error{}, said: map[string]heads.Facts{}}
	if kept := x.kept.Load(); only == "" && kept != nil && bytes.HasPrefix(data, kept.data) {
		r.data, r.number, r.lines = kept.data, kept.number, kept.lines
		r.known, r.said = maps.Clone(kept.known), maps.Clone(kept.said)
	}
	return r
}

// factsText is the file, nothing if there is none.
func (x *Heads) factsText(ctx context.Context) ([]byte, error) {
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
func (x *Heads) SetFacts(ctx context.Context, thread string, change heads.Facts) error {
	return x.changeThreads(ctx, func(f *file) error {
		return x.appendFacts(ctx, f, map[string]heads.Facts{thread: change})
	})
}

// appendFacts adds lines durably, under the lock of the threads. threads.yaml, which
// the caller saves, says then how many there are.
func (x *Heads) appendFacts(ctx context.Context, f *file, changes map[string]heads.Facts) error {
	text, err := factsLines(changes)
	if err != nil {
		return err
	}
	if done, err := x.mendFacts(ctx, f, text); done || len(text) == 0 || err != nil {
		return err
	}
	start, err := x.mendTail(factsFile, isFacts)
	if err != nil {
		return err
	}
	if err := durable.AppendFile(x.fsys, x.path(factsFile), append(start, text...), privateFile); err != nil {
		return err
	}
	data, err := x.factsText(ctx)
	f.facts = countLines(data)
	return err
}

// factsLines are changes as lines.
func factsLines(changes map[string]heads.Facts) (text []byte, err error) {
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
func factsLine(thread string, change heads.Facts) ([]byte, error) {
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
