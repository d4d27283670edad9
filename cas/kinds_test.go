package cas_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Add relies on a payload's Validate and compiles no schema. For every kind the two must therefore accept the
// same payloads: here each field of each sample, at any depth, is set to every relevant value.
func TestValidateAgreesWithTheSchema(t *testing.T) {
	t.Parallel()
	accepted, refused := map[protocol.Kind]int{}, map[protocol.Kind]int{}
	schemas := map[protocol.Type]*jsonschema.Schema{}
	for _, p := range samples() {
		root := reflect.New(reflect.TypeOf(p)).Elem()
		root.Set(reflect.ValueOf(p))
		vary(root, string(p.Kind()), func(where string) {
			varied, ok := root.Interface().(protocol.Payload)
			require.True(t, ok)
			payload, err := cas.Encode(varied)
			require.NoError(t, err, where)
			value, err := cas.Decode(payload)
			require.NoError(t, err, where)
			byHand := varied.Validate()
			typ := protocol.TypeOf(varied)
			if schemas[typ] == nil {
				schemas[typ] = typeSchema(t, typ)
			}
			problems, err := schemas[typ].Validate(t.Context(), value)
			require.NoError(t, err, where)
			require.Equal(t, len(problems) == 0, byHand == nil,
				"%s:\nthe schema says %v,\nValidate says %v", where, problems, byHand)
			if byHand == nil {
				accepted[p.Kind()]++
			} else {
				refused[p.Kind()]++
			}
		})
	}
	for _, k := range protocol.Kinds() {
		require.NotZero(t, accepted[k], k)
		if k != protocol.KindText {
			require.NotZero(t, refused[k], k)
		}
	}
}

func typeSchema(t testing.TB, typ protocol.Type) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.Compile(parseJSON(t, protocol.SchemaJSON(typ)))
	require.NoError(t, err, typ)
	return schema
}

// vary sets v and everything inside it to other values one by one, calls check with each, and restores the
// old value.
func vary(v reflect.Value, where string, check func(string)) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	for _, other := range variants(v.Type()) {
		v.Set(other)
		check(fmt.Sprintf("%s = %#v", where, other))
	}
	v.Set(old)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			vary(v.Field(i), where+"."+v.Type().Field(i).Name, check)
		}
	case reflect.Pointer:
		varyCopy(v, where, check)
	case reflect.Slice:
		for i := range v.Len() {
			vary(v.Index(i), fmt.Sprintf("%s[%d]", where, i), check)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			varyEntry(v, key, where, check)
		}
	}
}

// varyCopy varies the target of a pointer without affecting others.
func varyCopy(v reflect.Value, where string, check func(string)) {
	if v.IsNil() {
		return
	}
	old := v.Elem()
	v.Set(reflect.New(old.Type()))
	v.Elem().Set(old)
	vary(v.Elem(), where, check)
}

// varyEntry varies a value in a map, which can't be changed in place.
func varyEntry(m, key reflect.Value, where string, check func(string)) {
	old := m.MapIndex(key)
	entry := reflect.New(m.Type().Elem()).Elem()
	entry.Set(old)
	vary(entry, fmt.Sprintf("%s[%v]", where, key), func(where string) {
		m.SetMapIndex(key, entry)
		check(where)
	})
	m.SetMapIndex(key, old)
}

// variants returns values of a type that can matter to a schema.
func variants(t reflect.Type) []reflect.Value {
	var out []reflect.Value
	add := func(values ...any) {
		for _, v := range values {
			out = append(out, reflect.ValueOf(v).Convert(t))
		}
	}
	switch t.Kind() {
	case reflect.String:
		add("", "x", string(someHash), "00000000000ab", "0000000000000B", "ZZZZZZZZZZZZZ", "000000000000U",
			"$SUSPEND", "frontmatter", "value", "llm", string(someTree), "sha1:0", string(someTree)+"\n", "turns", "final", "system", "user", "assistant", "tool", "\n")
	case reflect.Int, reflect.Int64:
		add(-1, 0, 1, 1<<53-1, math.MaxInt32)
	case reflect.Float64:
		add(-0.5, 0.0, 0.5, -1.0, 1e300)
	case reflect.Slice, reflect.Map:
		out = append(out, reflect.Zero(t))
		if t.Kind() == reflect.Slice {
			out = append(out, reflect.MakeSlice(t, 0, 0), reflect.MakeSlice(t, 1, 1))
		} else {
			out = append(out, reflect.MakeMap(t))
		}
	case reflect.Pointer:
		out = append(out, reflect.Zero(t), reflect.New(t.Elem()))
	case reflect.Struct:
		out = append(out, reflect.Zero(t))
	case reflect.Interface:
		out = append(out, reflect.Zero(t))
		for _, v := range []any{1, "x", []any{nil}, map[string]any{"a": 1}, false} {
			value := reflect.New(t).Elem()
			value.Set(reflect.ValueOf(v))
			out = append(out, value)
		}
	}
	return out
}
