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
func (x *Heads) rewriteFacts(ctx context.Context, gone map[string]bool) error {
	data, err := x.factsText(ctx)
	if err != nil {
		return err
	}
	r, err := x.readFacts(ctx, data, "")
	if err != nil {
		return err
	}
	_, bad := sortLines(data, parseFacts)
	if r.torn != nil { // its line goes
		if err := r.mark(); err != nil {
			return err
		}
	}
	merged := r.known
	maps.DeleteFunc(merged, func(thread string, _ fields) bool { return gone[thread] })
	var text []byte
	for _, thread := range slices.Sorted(maps.Keys(merged)) {
		known := merged[thread]
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
	if text = append(text, bad...); bytes.Equal(text, data) {
		return nil
	}
	if len(text) == 0 {
		text = []byte("\n") // a file without a byte has lost them
	}
	return durable.WriteFile(x.fsys, x.path(factsFile), text, privateFile)
}

// mendFacts cuts off a torn last line that may be about threads of this home, or makes
// a file that is lost again: it writes what is known of those threads from now on, and
// then a text, in one change; done: it was like that.
func (x *Heads) mendFacts(ctx context.Context, text []byte) (done bool, err error) {
	data, err := x.factsText(ctx)
	if err != nil || len(data) > 0 && data[len(data)-1] == '\n' {
		return false, err
	}
	r, err := x.readFacts(ctx, data, "")
	if err != nil || r.torn == nil {
		return false, err
	}
	maps.DeleteFunc(r.doubts, func(_ string, why error) bool { return why != r.torn }) // other lines stay
	marks, err := r.lost()
	if err != nil || len(marks) == 0 {
		return false, err
	}
	lines, err := factsLines(marks)
	if err != nil {
		return false, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	return true, durable.WriteFile(x.fsys, x.path(factsFile), slices.Concat(whole, lines, text), privateFile)
}

// sortFacts is sortLines for the facts: what stays says which threads those lines may
// have been about that go.
func (x *Heads) sortFacts(ctx context.Context, data []byte) (good, bad []byte, err error) {
	good, bad = sortLines(data, parseFacts)
	r, err := x.readFacts(ctx, data, "")
	if err != nil {
		return nil, nil, err
	}
	marks, err := r.lost()
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
			return fmt.Errorf("%q is no field of it: it is damaged, or misspelt", key)
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
