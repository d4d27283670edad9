package exactjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/fuzzing"
)

func TestWhatWouldBeChangedIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"n":9007199254740993}`:                `line 1, column 6: 9007199254740993 cannot be kept`,
		`[12345678901234567890]`:                `12345678901234567890 cannot be kept`,
		`-9223372036854775807`:                  `cannot be kept`,
		`{"a":1,` + "\n" + `"a":2}`:             `line 2, column 3: the key "a" is there twice`,
		`{"x":{"b":1,"\u0062":2}}`:              `the key "b" is there twice`,
		`"\ud800"`:                              `line 1, column 2: \ud800 is half of a character`,
		`"\udc00\ud800"`:                        `\udc00 is half`,
		`{"\uD83D":1}`:                          `\ud83d is half`,
		"\"a\xff\"":                             `line 1, column 3: this is not UTF-8`,
		`1 2`:                                   `more than one value`,
		`{"a":`:                                 `ends in the middle`,
		``:                                      `ends in the middle`,
		`{a:1}`:                                 `invalid character 'a'`,
		strings.Repeat("[", 2000):               `more than 1000 levels deep`,
		`[1` + strings.Repeat("0", 400) + `]`:   `cannot be kept`,
		`{"n":-1e400}`:                          `-1e400 cannot be kept: it is beyond 1.79e308`,
		`{"id":18446744073709551615,"ok":true}`: `write it as a text, in quotes`,
	} {
		err := exactjson.Check([]byte(text))
		require.Error(t, err, text)
		require.Contains(t, err.Error(), want, text)
	}
}

func TestWhatIsKeptIsRead(t *testing.T) {
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

// What is accepted is read by encoding/json, too, and nothing panics.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"\ud83d\ude00",null,true,{"b":"\\u"}]}`))
	f.Add([]byte(`"\ud800\u"`))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzzing.Bounded(t)()
		if exactjson.Check(data) == nil {
			require.True(t, json.Valid(data))
		}
	})
}

// A whole number is refused if it is not kept, however it is written.
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
