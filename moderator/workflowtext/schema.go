package workflowtext

import (
	"cmp"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamltext"
)

// schemaKeys are the keywords in the order in which people write them; others
// stand between the two groups, by name.
var (
	firstKeys = [...]string{"title", "type", "const", "enum", "format", "description"}
	lastKeys  = [...]string{"properties", "items", "oneOf", "anyOf", "allOf", "not", "additionalProperties", "required"}
)

func keywordRank(key string) int {
	if i := slices.Index(firstKeys[:], key); i >= 0 {
		return i - len(firstKeys)
	}
	return slices.Index(lastKeys[:], key) + 1
}

// schema gives the keys of a JSON Schema an order.
func schema(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	m := yamltext.Map{}
	keys := slices.SortedFunc(maps.Keys(object), func(a, b string) int {
		return cmp.Or(cmp.Compare(keywordRank(a), keywordRank(b)), cmp.Compare(a, b))
	})
	for _, key := range keys {
		m = append(m, yamltext.Entry{Key: key, Value: keyword(key, object)})
	}
	return m
}

// keyword orders the value of one keyword, if there are schemas in it.
func keyword(key string, object map[string]any) any {
	value := object[key]
	switch key {
	case "properties":
		if fields, ok := value.(map[string]any); ok {
			return properties(fields, object["required"])
		}
	case "oneOf", "anyOf", "allOf":
		if list, ok := value.([]any); ok {
			out := make(yamltext.List, len(list))
			for i, v := range list {
				out[i] = schema(v)
			}
			return out
		}
	case "items", "not", "additionalProperties":
		return schema(value)
	}
	return value
}

// properties stand with the status first, then what is required in that order,
// then the rest by name.
func properties(fields map[string]any, required any) yamltext.Map {
	order := []string{protocol.StatusKey, "status"}
	if names, ok := required.([]any); ok {
		for _, n := range names {
			if name, ok := n.(string); ok {
				order = append(order, name)
			}
		}
	}
	order = append(order, slices.Sorted(maps.Keys(fields))...)
	m := yamltext.Map{}
	seen := map[string]bool{}
	for _, name := range order {
		if field, ok := fields[name]; ok && !seen[name] {
			seen[name] = true
			m = append(m, yamltext.Entry{Key: name, Value: schema(field)})
		}
	}
	return m
}
