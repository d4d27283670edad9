package children

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/util/plaintext"
)

// LabelOf says in a few words, on one line, which item a child is for; "" if it is for
// none: then its key is a name. The key of one for an item says nothing to a person.
func LabelOf(c moderator.Child) string {
	const most = 60
	if c.Item == nil {
		return ""
	}
	text := textOf(c.Item)
	if object, ok := c.Item.(map[string]any); ok {
		text = textOfObject(object)
	}
	if text == "" {
		text = firstLine(c.Prompt)
	}
	return plaintext.Short(text, most)
}

// textOfObject is what an object calls itself, else all of its texts and numbers.
func textOfObject(object map[string]any) string {
	for _, name := range []string{"title", "name", "label", "subject", "summary", "id"} {
		if text := textOf(object[name]); text != "" {
			return text
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if text := textOf(object[name]); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, " · ")
}

// textOf is a text or a number on one line, "" for anything else.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return firstLine(v)
	case float64, int, int64, uint64, json.Number:
		return firstLine(fmt.Sprint(v))
	}
	return ""
}

// firstLine is the beginning of a text: an item may have megabytes.
func firstLine(s string) string {
	const most = 4000 // bytes
	s, _, _ = strings.Cut(strings.TrimSpace(s[:min(len(s), most)]), "\n")
	return strings.Join(strings.Fields(plaintext.Line(s)), " ")
}
