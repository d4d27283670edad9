package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/util/durable"
)

// FactsPath is the file of the facts.
func (x *Index) FactsPath() string { return x.path(factsFile) }

// numberedFacts is a line that says something, or cannot be read.
type numberedFacts struct {
	factsChange
	text   []byte // with its end, if it has one
	number int
	err    error
}

// factsLines yields the lines of a file. What says nothing, and what a kill or a
// power cut has left of the last one, is passed over.
func factsLines(data []byte) iter.Seq[numberedFacts] {
	return func(yield func(numberedFacts) bool) {
		number := 0
		for text := range bytes.Lines(data) {
			number++
			line, whole := bytes.CutSuffix(text, []byte("\n"))
			change, err := parseFacts(line)
			if errors.Is(err, errNothing) || err != nil && !whole {
				continue
			}
			if !yield(numberedFacts{factsChange: change, text: text, number: number, err: err}) {
				return
			}
		}
	}
}

// rewriteFacts writes one line for each thread but those that are gone, under the
// lock of the threads. Lines that cannot be read stay.
func (x *Index) rewriteFacts(gone map[string]bool) error {
	data, err := x.readLog(factsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	merged, bad := map[string]fields{}, []byte(nil)
	for line := range factsLines(data) {
		switch {
		case line.err != nil:
			bad = append(bad, line.text...)
		case gone[line.thread]:
		case merged[line.thread] == nil:
			merged[line.thread] = line.fields
		default:
			merged[line.thread].merge(line.fields)
		}
	}
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
