package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// checkedFormats lists formats that the original accepts and then crashes on; we assert them.
var checkedFormats = map[string]bool{"date-time": true, "email": true}

func TestValidateVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Schema any
		Value  any
		Valid  *bool
		Threw  *string
	}
	raw, err := os.ReadFile("testdata/jsonschema-validate.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		name := fmt.Sprint(c.Schema, " ", c.Value)
		s, err := jsonschema.Compile(c.Schema)
		schema, _ := c.Schema.(map[string]any)
		if format, _ := schema["format"].(string); c.Threw != nil && checkedFormats[format] {
			require.NoError(t, err, name)
			require.NotEmpty(t, validate(t, s, c.Value), name)
			continue
		}
		if c.Threw != nil {
			require.Error(t, err, name)
			continue
		}
		require.NoError(t, err, name)
		problems := validate(t, s, c.Value)
		require.Equal(t, *c.Valid, problems == nil, "%s: %v", name, problems)
	}
}

func TestOwnSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range protocol.Types() {
		var schema any
		require.NoError(t, json.Unmarshal(protocol.SchemaJSON(kind), &schema))
		_, err := jsonschema.Compile(schema)
		require.NoError(t, err, kind)
	}
}
