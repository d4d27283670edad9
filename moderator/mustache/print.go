package mustache

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/jsnumber"
)

// print writes a value as JavaScript converts it to a string, but objects as
// JSON.
func (r *renderer) print(value any, depth int) error {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return r.write(v)
	case []any:
		return r.printList(v, depth)
	}
	return r.json(value, depth)
}

// printList joins the items by commas; lists inside it flatten.
func (r *renderer) printList(items []any, depth int) error {
	if depth > maxValue {
		return ErrTooLarge
	}
	for i, item := range items {
		if i > 0 {
			if err := r.write(","); err != nil {
				return err
			}
		}
		if err := r.print(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// json writes a value as JSON, keys sorted.
func (r *renderer) json(value any, depth int) error {
	if depth > maxValue {
		return ErrTooLarge
	}
	switch v := value.(type) {
	case nil:
		return r.write("null")
	case bool:
		return r.write(strconv.FormatBool(v))
	case string:
		return r.write(quoteJSON(v))
	case []any:
		return r.jsonGroup('[', ']', len(v), func(i int) error {
			return r.json(v[i], depth+1)
		})
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		return r.jsonGroup('{', '}', len(keys), func(i int) error {
			if err := r.write(quoteJSON(keys[i]) + ":"); err != nil {
				return err
			}
			return r.json(v[keys[i]], depth+1)
		})
	}
	return r.write(formatNumber(value))
}

func (r *renderer) jsonGroup(open, closing byte, n int, item func(i int) error) error {
	for i := range n {
		separator := ","
		if i == 0 {
			separator = string(open)
		}
		if err := r.write(separator); err != nil {
			return err
		}
		if err := item(i); err != nil {
			return err
		}
	}
	if n == 0 {
		return r.write(string([]byte{open, closing}))
	}
	return r.write(string(closing))
}

func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // strings always encode
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// formatNumber writes a number as JavaScript does: whole up to 1e21, the
// shortest digits that read back, an exponent below 1e-6.
func formatNumber(value any) string {
	switch v := value.(type) {
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	f, isNumber := jsnumber.Float(value)
	if !isNumber {
		return fmt.Sprint(value)
	}
	return jsnumber.Format(f)
}
