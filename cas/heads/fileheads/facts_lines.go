package fileheads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/exactjson"
)

// rewriteFacts writes one line for each thread but those that are gone, under the
// lock of the threads. Lines that cannot be read stay.
func (x *Heads) rewriteFacts(ctx context.Context, f *file, gone map[string]bool) error {
	r, err := x.readFacts(ctx, "")
	if err != nil {
		return err
	}
	_, bad := sortLines(r.data, parseFacts)
	if r.torn != nil || r.lost != nil { // what they may have said goes
		if err := r.mark(); err != nil {
			return err
		}
	}
	merged := r.known
	maps.DeleteFunc(merged, func(thread string, _ fields) bool { return gone[thread] })
	var text []byte
	for _, thread := range slices.Sorted(maps.Keys(merged)) {
		known := maps.Clone(merged[thread])
		maps.DeleteFunc(known, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
		if len(known) == 0 {
			continue
		}
		line, err := known.line(thread)
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	if text = append(text, bad...); bytes.Equal(text, r.data) {
		return nil
	}
	return x.replaceFacts(f, text, r.lost != nil)
}

// replaceFacts rewrites the file, under the lock of the threads. A cut in between
// must leave no fewer lines than threads.yaml says, unless some are lost already.
func (x *Heads) replaceFacts(f *file, text []byte, lost bool) error {
	f.facts = countLines(text)
	write := func() error { return durable.WriteFile(x.fsys, x.path(factsFile), text, privateFile) }
	count := func() error { return x.saveThreads(f) }
	steps := []func() error{count, write}
	if lost {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// mendFacts cuts off a torn last line that may be about threads of this home, or makes
// up for lines that are lost: it writes what is known of those threads from now on, and
// then a text, in one change; done: it was like that.
func (x *Heads) mendFacts(ctx context.Context, f *file, text []byte) (done bool, err error) {
	r, err := x.readFacts(ctx, "")
	if err != nil || r.torn == nil && r.lost == nil {
		return false, err
	}
	maps.DeleteFunc(r.doubts, func(_ string, why error) bool { return why != r.torn && why != r.lost }) // other lines stay
	marks, err := r.marks()
	if err != nil || len(marks) == 0 {
		return false, err
	}
	lines, err := factsLines(marks)
	if err != nil {
		return false, err
	}
	whole := r.data
	switch end := bytes.LastIndexByte(whole, '\n') + 1; {
	case r.torn != nil:
		whole = whole[:end]
	case end < len(whole):
		whole = append(whole, '\n')
	}
	all := slices.Concat(whole, lines, text)
	f.facts = countLines(all)
	return true, durable.WriteFile(x.fsys, x.path(factsFile), all, privateFile)
}

// sort is sortLines for the facts: what stays says which threads those lines may
// have been about that go.
func (r *factsRead) sort() (good, bad []byte, err error) {
	good, bad = sortLines(r.data, parseFacts)
	marks, err := r.marks()
	if err != nil {
		return nil, nil, err
	}
	lines, err := factsLines(marks)
	return append(good, lines...), bad, err
}

// fields are what a line says beside the thread.
type fields map[string]json.RawMessage

// merge adds a later change.
func (f fields) merge(change fields) { maps.Copy(f, change) }

// facts reads the fields that this program knows.
func (f fields) facts() (heads.Facts, error) {
	var out heads.Facts
	if len(f) == 0 {
		return out, nil
	}
	data, err := json.Marshal(f)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(data, &out)
}

// line writes fields as a line; null is left out of what is rewritten.
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
	if _, sound := sumOf(line); sound {
		delete(f, checkKey)
	} else if err := exact(line, f); err != nil {
		return factsChange{}, fmt.Errorf("has no sum, and %w", err)
	}
	c.fields = f
	if _, err := f.facts(); err != nil {
		return factsChange{}, fmt.Errorf("not a line of facts: %w", err)
	}
	return c, nil
}

// exact is an error unless a line without a sum says what it says in one way only. A
// newer uwf may write other fields, but with a sum: here they are damaged, misspelt,
// or meant to be overlooked.
func exact(line []byte, f fields) error {
	if err := exactjson.Check(line); err != nil {
		return err
	}
	return knownKeys(f, reflect.TypeFor[heads.Facts]())
}

// knownKeys is an error if an object has other keys than a type, or one of its
// objects has.
func knownKeys(object fields, t reflect.Type) error {
	types := map[string]reflect.Type{}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "-" {
			types[key] = t.Field(i).Type
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := types[key]
		if !known {
			return fmt.Errorf("%q is not a field of it: it is damaged, or misspelt", key)
		}
		var inner fields
		if field.Kind() != reflect.Pointer || field.Elem().Kind() != reflect.Struct || json.Unmarshal(object[key], &inner) != nil {
			continue
		}
		if err := knownKeys(inner, field.Elem()); err != nil {
			return err
		}
	}
	return nil
}
