package jsonschema

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func readVectors(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

// checkedFormats are formats that the original accepts and then crashes on; we
// assert them.
var checkedFormats = map[string]bool{"date-time": true, "email": true}

func TestValidateVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Schema any
		Value  any
		Valid  *bool
		Threw  *string
	}
	readVectors(t, "jsonschema-validate.json", &cases)
	for _, c := range cases {
		name := show(c.Schema) + " " + show(c.Value)
		s, err := Compile(c.Schema)
		if format, _ := at(c.Schema, []string{"format"}).(string); c.Threw != nil && checkedFormats[format] {
			require.NoError(t, err, name)
			require.NotEmpty(t, s.Validate(c.Value), name)
			continue
		}
		if c.Threw != nil {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		problems := s.Validate(c.Value)
		require.Equal(t, *c.Valid, problems == nil, "%s: %v", name, problems)
	}
}

func TestMetaVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Schema any
		OK     bool
	}
	readVectors(t, "schema-meta-validate.json", &cases)
	for _, c := range cases {
		require.Equal(t, c.OK, Check(c.Schema) == nil, show(c.Schema))
	}
}

func TestOwnSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range protocol.Kinds() {
		var schema any
		require.NoError(t, json.Unmarshal(protocol.SchemaJSON(kind), &schema))
		_, err := Compile(schema)
		require.NoError(t, err, kind)
	}
}
