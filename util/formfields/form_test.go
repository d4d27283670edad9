package formfields_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/formfields"
	"github.com/united-workforce/uwf/util/prosetest"
)

func schema(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

const review = `{"type":"object","required":["$status"],"properties":{"$status":{"enum":["approved","rejected"]},"comment":{"type":"string","description":"Why"},"count":{"type":"integer"}}}`

const variants = `{"oneOf":[
	{"properties":{"$status":{"const":"yes"},"when":{"type":"string"}},"required":["$status","when"]},
	{"properties":{"$status":{"const":"no"},"why":{"type":"string"}},"required":["$status"]}]}`

func names(fields []formfields.Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

func TestFields(t *testing.T) {
	t.Parallel()
	fields := formfields.Fields(schema(t, review), nil, "$status")
	require.Equal(t, []string{"$status", "comment", "count"}, names(fields))
	require.Equal(t, []string{"approved", "rejected"}, fields[0].Choices)
	require.True(t, fields[0].Required)
	require.Equal(t, "Why", fields[1].Description)
	prosetest.Text(t, fields[2].Kind())

	fields = formfields.Fields(schema(t, variants), nil, "$status")
	require.Equal(t, []string{"$status"}, names(fields), "the others depend on it")
	require.Equal(t, []string{"yes", "no"}, fields[0].Choices)
	require.Equal(t, []string{"$status", "when"}, names(formfields.Fields(schema(t, variants), map[string]any{"$status": "yes"}, "$status")))
	require.Equal(t, []string{"$status", "why"}, names(formfields.Fields(schema(t, variants), map[string]any{"$status": "no"}, "$status")))
	several := strings.Replace(variants, `"const":"yes"`, `"enum":["yes","soon"]`, 1)
	require.Equal(t, []string{"yes", "soon", "no"}, formfields.Fields(schema(t, several), nil, "$status")[0].Choices)
	require.Equal(t, []string{"$status", "when"}, names(formfields.Fields(schema(t, several), map[string]any{"$status": "soon"}, "$status")))
	fields = formfields.Fields(schema(t, `{"required":["n"],"properties":{"n":{"type":"integer","default":2}}}`), nil)
	require.Equal(t, "2", fields[0].Default)
	require.False(t, fields[0].Required, "it has a default")
	require.Empty(t, formfields.Fields(schema(t, `{"type":"integer"}`), nil))
	require.Empty(t, formfields.Fields(true, nil))
}

func TestValue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		schema, text string
		want         any
	}{
		{`{"type":"string"}`, "5", "5"}, {`{"type":"string"}`, "", ""},
		{`{"type":"integer"}`, " 5 ", int64(5)}, {`{"type":"number"}`, "5", int64(5)}, {`{"type":"number"}`, "5.5", 5.5},
		{`{"type":"boolean"}`, "Yes", true}, {`{"type":"boolean"}`, "false", false}, {`{"type":["integer","null"]}`, "null", nil},
		{`{"type":"array"}`, "a, b", []any{"a", "b"}}, {`{"type":"array"}`, "[1, b]", []any{int64(1), "b"}}, {`{"type":"array"}`, "", []any{}},
		{`{"type":"object"}`, "{a: 1}", map[string]any{"a": int64(1)}}, {`{"type":["integer","string"]}`, "5", "5"},
		{`{"enum":["a",1]}`, "1", 1.0}, {`{"enum":["a"]}`, "b", "b"}, {`{}`, "5", int64(5)}, {`{}`, "a: [", "a: ["}, {`true`, "x", "x"},
	} {
		got, err := formfields.Of(schema(t, test.schema)).Value(test.text)
		require.NoError(t, err, test.schema)
		require.Equal(t, test.want, got, "%s %q", test.schema, test.text)
	}
	for text, kind := range map[string]string{"x": `{"type":"integer"}`, "maybe": `{"type":"boolean"}`, "[": `{"type":"array"}`, "a": `{"type":"object"}`} {
		_, err := formfields.Of(schema(t, kind)).Value(text)
		prosetest.Error(t, err, kind)
	}
	_, err := formfields.Of(schema(t, `{"type":"array"}`)).Value(strings.Repeat("[", 1<<20))
	prosetest.Error(t, err)
	require.Less(t, len(err.Error()), 300)
	f, ok := formfields.Named(schema(t, variants), "when")
	require.True(t, ok)
	got, err := f.Value("5")
	require.NoError(t, err)
	require.Equal(t, "5", got)
	_, ok = formfields.Named(schema(t, review), "comments")
	require.False(t, ok)
}

// A number that would be rounded is rejected anywhere in a value.
func TestNoNumberIsRounded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ schema, text string }{
		{`{"type":"integer"}`, "9007199254740993"}, {`{"type":"number"}`, "9007199254740993.0"}, {`{}`, "9007199254740993"},
		{`{"type":"object"}`, `{"a":[{"id":9007199254740993}]}`}, {`{"type":"array"}`, "[1, 12345678901234567890]"},
	} {
		_, err := formfields.Of(schema(t, test.schema)).Value(test.text)
		prosetest.Error(t, err, test.text)
	}
	for _, text := range []string{`"9007199254740993"`, "9007199254740993"} {
		v, err := formfields.Of(schema(t, `{"type":"string"}`)).Value(text)
		require.NoError(t, err)
		require.Equal(t, text, v)
	}
}

// A number sign in typed text is text, as in an agent's answer.
func TestNumberSigns(t *testing.T) {
	t.Parallel()
	free, ok := formfields.Named(schema(t, `{"properties":{"a":{}}}`), "a")
	require.True(t, ok)
	v, err := free.Value("Fixes #42")
	require.NoError(t, err)
	require.Equal(t, "Fixes #42", v)
	tags, _ := formfields.Named(schema(t, `{"properties":{"tags":{"type":"array"}}}`), "tags")
	v, err = tags.Value("[#1, see #2]")
	require.NoError(t, err)
	require.Equal(t, []any{"#1", "see #2"}, v)
}
