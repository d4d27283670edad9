package exactjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/fuzztest"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestWhatWouldBeChangedIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"n":9007199254740993}`,
		`[12345678901234567890]`,
		`-9223372036854775807`,
		`{"a":1,` + "\n" + `"a":2}`,
		`{"x":{"b":1,"\u0062":2}}`,
		`"\ud800"`,
		`"\udc00\ud800"`,
		`{"\uD83D":1}`,
		"\"a\xff\"",
		`1 2`,
		`{"a":`,
		``,
		`{a:1}`,
		strings.Repeat("[", 2000),
		`[1` + strings.Repeat("0", 400) + `]`,
		`{"n":-1e400}`,
		`{"id":18446744073709551615,"ok":true}`,
	} {
		err := exactjson.Check([]byte(text))
		require.Error(t, err, text)
		prosetest.Error(t, err, text)
	}
}

func TestKeptIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`9007199254740991`, `-9007199254740991`, `9007199254740992`, `9007199254740994`, `18446744073709552000`, `0.1000000000000000055`, `1e300`, `-0`,
		`"\ud83d\ude00"`, `"\\ud800"`, `"\\\ud83d\ude00"`, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, ` null `, `"\u0041"`,
	} {
		v, err := exactjson.Parse([]byte(text))
		require.NoError(t, err, text)
		out, err := json.Marshal(v)
		require.NoError(t, err)
		require.JSONEq(t, text, string(out))
	}
}

// encoding/json also accepts what Check accepts, and nothing panics.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"\ud83d\ude00",null,true,{"b":"\\u"}]}`))
	f.Add([]byte(`"\ud800\u"`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Bounded(t)()
		if exactjson.Check(data) == nil {
			require.True(t, json.Valid(data))
		}
	})
}

// An integer that can't be represented is rejected in any notation.
func TestKeepsHoweverWritten(t *testing.T) {
	t.Parallel()
	for number, kept := range map[string]bool{
		"9007199254740993.0": false, "9.007199254740993e15": false, "9007199254740993": false, "-9007199254740993.0": false, "900719925474099.3E1": false, "1e400": false, "-1e400": false,
		"9007199254740992.0": true, "9.007199254740992e15": true, "1e23": true, "1e300": true, "100000000000000000000000": true,
		"9007199254740993.5": true, "0.1": true, "3.141592653589793238": true, "1e-400": true, "12345678901234.5": true,
	} {
		require.Equal(t, kept, exactjson.Keeps(number), number)
	}
}
