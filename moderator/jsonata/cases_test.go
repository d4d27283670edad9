package jsonata

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// testCase is a case of the JSONata project's own tests (MIT license).
type testCase struct {
	Group     string                     `json:"group"`
	ID        string                     `json:"id"`
	Expr      string                     `json:"expr"`
	Dataset   string                     `json:"dataset"`
	Data      json.RawMessage            `json:"data"`
	Bindings  map[string]json.RawMessage `json:"bindings"`
	Result    json.RawMessage            `json:"result"`
	Undefined bool                       `json:"undefined"`
	Error     string                     `json:"error"`
}

func TestCases(t *testing.T) {
	t.Parallel()
	cases, datasets := loadCases(t)
	require.Len(t, cases, 506)
	for _, c := range cases {
		t.Run(c.Group+"/"+c.ID, func(t *testing.T) {
			t.Parallel()
			value, defined, err := c.eval(t, datasets)
			c.compare(t, value, defined, err)
		})
	}
}

func (c testCase) compare(t testing.TB, value any, defined bool, err error) {
	t.Helper()
	switch {
	case c.Error != "":
		require.Error(t, err)
		require.Equal(t, c.Error, err.(*Error).Code, err)
	case c.Undefined:
		require.NoError(t, err)
		require.False(t, defined, "%v", value)
	default:
		require.NoError(t, err)
		require.True(t, defined)
		require.JSONEq(t, string(c.Result), toJSON(t, value))
	}
}

func (c testCase) eval(t testing.TB, datasets map[string]json.RawMessage) (any, bool, error) {
	t.Helper()
	x, err := Parse(c.Expr)
	if err != nil {
		return nil, false, err
	}
	options := Options{Bindings: map[string]any{}}
	for name, value := range c.Bindings {
		options.Bindings[name] = fromJSON(t, value)
	}
	return x.Eval(t.Context(), c.input(t, datasets), options)
}

// input returns the input of a case. Null is the closest to JavaScript's undefined.
func (c testCase) input(t testing.TB, datasets map[string]json.RawMessage) any {
	t.Helper()
	switch {
	case c.Dataset != "":
		require.Contains(t, datasets, c.Dataset)
		return fromJSON(t, datasets[c.Dataset])
	case c.Data != nil:
		return fromJSON(t, c.Data)
	}
	return nil
}

func loadCases(t testing.TB) (cases []testCase, datasets map[string]json.RawMessage) {
	t.Helper()
	for name, into := range map[string]any{"cases.json": &cases, "datasets.json": &datasets} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, into))
	}
	return cases, datasets
}

// fromJSON keeps the order of members, which $keys exposes.
func fromJSON(t testing.TB, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return decode(t, d)
}

func decode(t testing.TB, d *json.Decoder) any {
	t.Helper()
	token, err := d.Token()
	require.NoError(t, err)
	switch token {
	case json.Delim('['):
		items := []any{}
		for d.More() {
			items = append(items, decode(t, d))
		}
		_, err = d.Token()
		require.NoError(t, err)
		return items
	case json.Delim('{'):
		o := &Object{}
		for d.More() {
			key, err := d.Token()
			require.NoError(t, err)
			o.Set(key.(string), decode(t, d))
		}
		_, err = d.Token()
		require.NoError(t, err)
		return o
	}
	if n, ok := token.(json.Number); ok {
		if i, err := n.Int64(); err == nil {
			return i
		}
		f, err := n.Float64()
		require.NoError(t, err)
		return f
	}
	return token
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(plain(v))
	require.NoError(t, err)
	return string(data)
}

// plain replaces the objects of a returned input.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = plain(item)
		}
		return items
	case *Object:
		members := map[string]any{}
		for _, k := range v.Keys() {
			value, _ := v.Get(k)
			members[k] = plain(value)
		}
		return members
	case map[string]any:
		members := map[string]any{}
		for k, value := range v {
			members[k] = plain(value)
		}
		return members
	}
	return v
}
