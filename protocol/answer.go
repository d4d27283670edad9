package protocol

import (
	"maps"
	"reflect"
)

// AnswerField holds the answer of a role that names no data.
const AnswerField = "answer"

// AnswerSchema is the schema of a role that names none: its answer is a text, as it
// is. An edge's prompt says {{{answer}}}, and the only edge is "_".
func AnswerSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{AnswerField},
		"properties": map[string]any{AnswerField: map[string]any{"type": "string"}},
	}
}

// IsAnswerSchema reports whether a schema is that of a role that names none,
// whatever its title: the store gives each role's schema one.
func IsAnswerSchema(schema any) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	m = maps.Clone(m)
	delete(m, "title")
	return reflect.DeepEqual(m, AnswerSchema())
}
