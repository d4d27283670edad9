package cas_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A value has one encoding, regardless of its Go type.
func TestEncode(t *testing.T) {
	t.Parallel()
	type named string
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"integral float":           {1.0, "01"},
		"negative zero":            {math.Copysign(0, -1), "00"},
		"literal 1.0":              {json.Number("1.0"), "01"},
		"literal 1e2":              {json.Number("1e2"), "1864"},
		"literal -0":               {json.Number("-0"), "00"},
		"literal -0.0":             {json.Number("-0.0"), "00"},
		"int":                      {-1, "20"},
		"int8, by way of JSON":     {int8(-1), "20"},
		"uint64":                   {uint64(24), "1818"},
		"2^53-1":                   {int64(1)<<53 - 1, "1b001fffffffffffff"},
		"-(2^53-1)":                {-(int64(1)<<53 - 1), "3b001ffffffffffffe"},
		"2^53 is a float":          {int64(1) << 53, "fb4340000000000000"},
		"-2^53 is a float":         {-(int64(1) << 53), "fbc340000000000000"},
		"2^53+1 is rounded":        {json.Number("9007199254740993"), "fb4340000000000000"},
		"2^64-1 is rounded":        {uint64(math.MaxUint64), "fb43f0000000000000"},
		"long literal":             {json.Number("12345678901234567890"), "fb43e56a95319d63e1"},
		"literal below all floats": {json.Number("1e-400"), "00"},
		"half":                     {0.5, "fb3fe0000000000000"},
		"float32, by way of JSON":  {float32(0.5), "fb3fe0000000000000"},
		"named string":             {named("x"), "6178"},
		"strings":                  {[]string{"x"}, "816178"},
		"nil slice":                {[]any(nil), "80"},
		"typed map":                {map[string]int{"b": 1, "a": 2, "aa": 3}, "a3616102616201626161" + "03"},
		"struct": {struct {
			B string `json:"b"`
			A *int   `json:"a"`
			C int    `json:"c,omitempty"`
		}{B: "x"}, "a26161f661626178"},
		"typed value inside a map": {map[string]any{"t": time.Unix(0, 0).UTC()}, "a1617474313937302d30312d30315430303a30303a30305a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload, err := cas.Encode(c.value)
			require.NoError(t, err)
			require.Equal(t, c.want, hex.EncodeToString(payload))
			require.NoError(t, cas.CheckCanonical(payload))
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	const bad = "a\xffb"
	type inner struct{ Text string }
	for name, c := range map[string]struct {
		value any
	}{
		"NaN":                         {math.NaN()},
		"infinity":                    {map[string]any{"a": []any{math.Inf(-1)}}},
		"NaN in a struct":             {struct{ F float64 }{math.NaN()}},
		"number beyond all floats":    {json.Number("1e400")},
		"a Number that is no number":  {json.Number("x")},
		"a Number in hexadecimal":     {json.Number("0x1p4")},
		"a Number with underscores":   {json.Number("1_000")},
		"a Number that is a name":     {json.Number("inf")},
		"an empty Number":             {json.Number("")},
		"text":                        {bad},
		"key":                         {map[string]any{bad: 1}},
		"text in a struct":            {struct{ A []any }{[]any{&inner{bad}}}},
		"key in a struct":             {struct{ A map[string]int }{map[string]int{bad: 1}}},
		"text in a struct in a value": {[]any{inner{bad}}},
		"function":                    {func() {}},
		"nesting":                     {nest(cas.MaxDepth + 1)},
		"size":                        {strings.Repeat("x", cas.MaxPayload)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cas.Encode(c.value)
			prosetest.Error(t, err)
		})
	}
}

func nest(depth int) any {
	var v any = "core"
	for i := range depth {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"k": v}
		}
	}
	return v
}

func TestDepthBoundIsTheSameBothWays(t *testing.T) {
	t.Parallel()
	payload, err := cas.Encode(nest(cas.MaxDepth))
	require.NoError(t, err)
	v, err := cas.Decode(payload)
	require.NoError(t, err)
	require.Equal(t, nest(cas.MaxDepth), v)

	deeper := append([]byte{0x81}, payload...)
	_, err = cas.Decode(deeper)
	prosetest.Error(t, err)
}

func TestEncodeChangesNothing(t *testing.T) {
	t.Parallel()
	value := map[string]any{"list": []any{1.0, json.Number("2")}, "map": map[string]any{"f": 3.0}}
	_, err := cas.Encode(value)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"list": []any{1.0, json.Number("2")}, "map": map[string]any{"f": 3.0}}, value)
}

func TestDecodeGivesFewTypes(t *testing.T) {
	t.Parallel()
	payload, err := cas.Encode(parseJSON(t, []byte(`{"a":[null,true,-7,1.5,"x",9007199254740993],"b":{}}`)))
	require.NoError(t, err)
	v, err := cas.Decode(payload)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"a": []any{nil, true, int64(-7), 1.5, "x", float64(1 << 53)},
		"b": map[string]any{},
	}, v)
}

// Data that the CBOR library or the original would accept but Encode would not write has a different hash
// than the same value in canonical form.
func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ cbor string }{
		"nothing":                  {""},
		"two values":               {"0101"},
		"integer not shortest":     {"1801"},
		"integer in 2 bytes":       {"1900ff"},
		"integer in 4 bytes":       {"1a0000ffff"},
		"integer in 8 bytes":       {"1b00000000ffffffff"},
		"integer cut short":        {"1b00"},
		"integer of 2^53":          {"1b0020000000000000"},
		"integer of -2^53":         {"3b001fffffffffffff"},
		"greatest negative":        {"3bffffffffffffffff"},
		"byte string":              {"4161"},
		"text cut short":           {"6261"},
		"text longer than memory":  {"7bffffffffffffffff"},
		"text not UTF-8":           {"61ff"},
		"surrogate":                {"63eda080"},
		"indefinite text":          {"7f6161ff"},
		"indefinite array":         {"9f01ff"},
		"indefinite map":           {"bf616101ff"},
		"reserved length":          {"1c"},
		"array cut short":          {"8201"},
		"array longer than memory": {"9bffffffffffffffff"},
		"map longer than memory":   {"bbffffffffffffffff"},
		"keys not sorted":          {"a2616201616101"},
		"longer key first":         {"a262616101616201"},
		"key twice":                {"a2616101616102"},
		"integer key":              {"a10101"},
		"byte string key":          {"a1416101"},
		"value missing":            {"a16161"},
		"tag":                      {"c11a514b67b0"},
		"undefined":                {"f7"},
		"simple value":             {"e0"},
		"long simple value":        {"f8ff"},
		"half float":               {"f93800"},
		"single float":             {"fa3f000000"},
		"integral float":           {"fb3ff0000000000000"},
		"negative zero":            {"fb8000000000000000"},
		"NaN":                      {"fb7ff8000000000000"},
		"infinity":                 {"fb7ff0000000000000"},
		"float cut short":          {"fb7ff0"},
		"break":                    {"ff"},
		"nesting":                  {strings.Repeat("81", 100_000) + "01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := hex.DecodeString(c.cbor)
			require.NoError(t, err)
			_, err = cas.Decode(data)
			prosetest.Error(t, err)
		})
	}
	_, err := cas.Decode(make([]byte, cas.MaxPayload+1))
	prosetest.Error(t, err)
}
