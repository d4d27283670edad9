package jsonschema_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
)

func FuzzCompile(f *testing.F) {
	f.Add(`{"oneOf":[{"properties":{"a":{"const":1}}},{"properties":{"a":{"const":2}}}]}`, `{"a":3}`)
	f.Add(`{"multipleOf":0.1,"pattern":"^a","format":"uri"}`, `"x"`)
	f.Add(`{"propertyNames":{"maxLength":1},"patternProperties":{"x":{"not":{}}},"additionalProperties":false}`, `{"xx":1,"y":[]}`)
	f.Add(`{"properties":{"%41/~":{"if":{},"then":{"contains":{"enum":[1]}}}}}`, `{"%41/~":[2]}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		var s, v any
		if json.Unmarshal([]byte(schema), &s) != nil || json.Unmarshal([]byte(value), &v) != nil {
			return
		}
		compiled, err := jsonschema.Compile(s)
		if _, ok := errors.AsType[*jsonschema.InvalidError](err); ok {
			return
		}
		require.NoError(t, err, "Check must find what the library refuses")
		require.NoError(t, jsonschema.MetaCheck(s), "Check must find what the meta-schema refuses: Compile doesn't use it")
		for _, p := range validate(t, compiled, v) {
			require.NotEmpty(t, p.Message)
			require.NotContains(t, p.Message, "does not satisfy", "every keyword has its own message")
		}
	})
}
