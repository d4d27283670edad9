package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/util/durable"
)

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
	for line := range linesOf(data, parseFacts) {
		switch change := line.value; {
		case line.err != nil:
			bad = append(bad, line.text...)
		case gone[change.thread]:
		case merged[change.thread] == nil:
			merged[change.thread] = change.fields
		default:
			merged[change.thread].merge(change.fields)
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
