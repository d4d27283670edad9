package index

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/util/durable"
)

// rewriteFacts writes one line for each thread but those that are gone, under the
// lock of the threads. Lines that cannot be read stay.
func (x *Index) rewriteFacts(ctx context.Context, gone map[string]bool) error {
	data, err := x.factsText(ctx)
	if len(data) == 0 || err != nil {
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
	return durable.WriteFile(x.fsys, x.path(factsFile), text, privateFile)
}

// mendFacts cuts off a torn last line that may be about threads of this home, and
// writes what is known of them from now on, and then a text, in one change; done: it
// was like that.
func (x *Index) mendFacts(ctx context.Context, text []byte) (done bool, err error) {
	data, err := x.factsText(ctx)
	if len(data) == 0 || data[len(data)-1] == '\n' || err != nil {
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
func (x *Index) sortFacts(ctx context.Context, data []byte) (good, bad []byte, err error) {
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
