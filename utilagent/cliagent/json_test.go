package cliagent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObject(t *testing.T) {
	t.Parallel()
	var v struct {
		A string
		B int
		C struct{ D string }
	}
	require.True(t, Object([]byte(` {"a":7,"b":1,"c":{"d":"x","e":[]}} `), &v), "what is of another type is passed over, the rest counts")
	require.Equal(t, 1, v.B)
	require.Equal(t, "x", v.C.D)
	for _, no := range []string{"", " ", "{", "[]", "7", `"{}"`, "null", "{}{}", "x{}"} {
		require.False(t, Object([]byte(no), &v), no)
	}
}

func TestTextOf(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "", "null": "", `"text"`: "text", "7": "7", "{}": "{}",
		`[{"type":"text","text":"one"},{"type":"image"},"two",{"x":1}]`: "one\n[image]\ntwo\n{\"x\":1}",
		`{"message":"why","code":1}`:                                    "why",
		`{"error":{"message":"why"}}`:                                   "why",
		`{"name":"E","data":{"message":"why"}}`:                         "why",
		`{"error":null}`:                                                "",
	} {
		require.Equal(t, want, TextOf(json.RawMessage(raw)), raw)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Content{
		`"text"`: "text", "null": "", `[{"text":"one "},{"image":1},{"text":"two"}]`: "one two", `{"type":"text","text":"x"}`: "x", "7": "7", "[7]": "",
	} {
		c := Content("before")
		require.NoError(t, json.Unmarshal([]byte(raw), &c))
		if raw != "null" { // which json.Unmarshal ignores
			require.Equal(t, want, c, raw)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	object := map[string]any{"a": 1.0}
	for _, v := range []any{object, `{"a":1}`, json.RawMessage(`{"a":1}`), json.RawMessage(`"{\"a\":1}"`)} {
		require.Equal(t, object, Arguments(v))
	}
	require.Nil(t, Arguments(nil))
	require.Nil(t, Arguments(""))
	require.Equal(t, "{half", Arguments("{half"))
	require.Equal(t, "ls", Arguments(json.RawMessage(`"ls"`)))
}
