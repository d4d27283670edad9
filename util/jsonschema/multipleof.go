package jsonschema

import (
	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// multipleOf is the name under which the library sees that keyword. Its own one
// reckons in decimal fractions; the original's divides floats, and a value must
// not be valid here and invalid there.
const multipleOf = "x-multipleOf"

type multipleOfCompiler struct{}

func (multipleOfCompiler) Compile(_ lib.CompilerContext, m map[string]any) (lib.ExtSchema, error) {
	n, ok := toFloat(m[multipleOf])
	if !ok {
		return nil, nil
	}
	return multipleOfSchema(n), nil
}

type multipleOfSchema float64

func (d multipleOfSchema) Validate(ctx lib.ValidationContext, v any) error {
	f, ok := toFloat(v)
	if !ok {
		return nil
	}
	if isMultiple(f, float64(d)) {
		return nil
	}
	return ctx.Error("multipleOf", "not a multiple")
}

// rename returns a schema with its multipleOf under the name above. It shares
// what it does not change.
func rename(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema // additionalProperties: a boolean
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		switch keywords[name] {
		case takesPositive:
			name = multipleOf
		case takesSchema, takesSchemaOrBool:
			v = rename(v)
		case takesSchemaList:
			list := v.([]any) // Check has seen to it
			renamed := make([]any, len(list))
			for i, item := range list {
				renamed[i] = rename(item)
			}
			v = renamed
		case takesSchemaMap, takesPatternMap:
			renamed := map[string]any{}
			for key, item := range v.(map[string]any) {
				renamed[key] = rename(item)
			}
			v = renamed
		}
		out[name] = v
	}
	return out
}
