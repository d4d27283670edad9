package plaintext_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/plaintext"
)

var hostile = []struct{ text, escaped, replaced, line, stripped string }{
	{"plain é 日本 👩\u200d💻\n\tx", "plain é 日本 👩\u200d💻\n\tx", "plain é 日本 👩\u200d💻\n\tx", "plain é 日本 👩\u200d💻  x", "plain é 日本 👩\u200d💻\n\tx"},
	{"a\x1b[8mb\x1b[m", `a\u001b[8mb\u001b[m`, "a\uFFFD[8mb\uFFFD[m", "a [8mb [m", "ab"},
	{"\x1b]52;c;eA==\ax", `\u001b]52;c;eA==\u0007x`, "\uFFFD]52;c;eA==\uFFFDx", " ]52;c;eA== x", "x"},
	{"c1 \u009b2J \u007f", `c1 \u009b2J \u007f`, "c1 \uFFFD2J \uFFFD", "c1  2J  ", "c1 2J "},
	{"byte \x9b2J", "byte \uFFFD2J", "byte \uFFFD2J", "byte \uFFFD2J", "byte \uFFFD2J"},
	{"cut \xe2\x82", "cut \uFFFD", "cut \uFFFD", "cut \uFFFD\uFFFD", "cut \uFFFD"},
	{"a\r\nb\rc\r", "a\nb\nc\n", "a\nb\nc\n", "a  b c ", "a\nb\nc\n"},
	{"bidi \u202e\u2066\u200f\u061c", `bidi \u202e\u2066\u200f\u061c`, "bidi \u202e\u2066\u200f\u061c", "bidi     ", "bidi "},
	{"a\u2028b\u2029", `a\u2028b\u2029`, "a\u2028b\u2029", "a b ", "ab"},
	{"so\u200blve\ufeff\u00ad\u3164", `so\u200blve\ufeff\u00ad\u3164`, "so\u200blve\ufeff\u00ad\u3164", "so\uFFFDlve\uFFFD\uFFFD\uFFFD", "solve"},
	{"\u180ea\ufff9b\u2800c", `\u180ea\ufff9b\u2800c`, "\u180ea\ufff9b\u2800c", "\uFFFDa\uFFFDb\uFFFDc", "abc"},
	{"a\u200db \u2060 x\ufe00", "a\u200db \\u2060 x\ufe00", "a\u200db \u2060 x\ufe00", "a\uFFFDb \uFFFD x\uFFFD", "a\u200db  x\ufe00"},
	{"می\u200cخواهم ❤️ क्\u200dष", "می\u200cخواهم ❤️ क्\u200dष", "می\u200cخواهم ❤️ क्\u200dष", "می\u200cخواهم ❤️ क्\u200dष", "می\u200cخواهم ❤️ क्\u200dष"},
	{"tag \U000E0041", `tag \udb40\udc41`, "tag \U000E0041", "tag  ", "tag "},
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, c := range hostile {
		require.Equal(t, c.escaped, plaintext.Escape(c.text), "%q", c.text)
		require.Equal(t, c.replaced, plaintext.Replace(c.text), "%q", c.text)
		require.Equal(t, c.line, plaintext.Line(c.text), "%q", c.text)
		require.Equal(t, c.stripped, plaintext.Strip(c.text), "%q", c.text)
	}
}

// FuzzEscape checks that nothing harmful remains, wherever the text is split, and that JSON keeps its value.
func FuzzEscape(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.text, 3)
	}
	f.Fuzz(func(t *testing.T, s string, at int) {
		want := plaintext.Escape(s)
		require.True(t, utf8.ValidString(want))
		for _, r := range want + plaintext.Strip(s) + plaintext.Line(s) {
			require.False(t, plaintext.Harmful(r), "%q", want)
		}
		require.Equal(t, want, plaintext.Escape(want))

		at = min(max(at, 0), len(s))
		out, rest := plaintext.Append(nil, []byte(s[:at]))
		out, rest = plaintext.Append(out, append(rest, s[at:]...))
		require.Equal(t, want, string(plaintext.AppendEnd(out, rest)))

		coded, err := json.Marshal(s)
		require.NoError(t, err)
		var before, after string
		require.NoError(t, json.Unmarshal(coded, &before))
		require.NoError(t, json.Unmarshal([]byte(plaintext.Escape(string(coded))), &after))
		require.Equal(t, before, after)
	})
}

// TestCleanTextIsNotCopied: nearly all texts are clean, and some are long.
func TestCleanTextIsNotCopied(t *testing.T) {
	const s = "an answer of some lines\nwith é and 日本"
	for name, form := range map[string]func(string) string{"Escape": plaintext.Escape, "Replace": plaintext.Replace, "Strip": plaintext.Strip} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = form(s) }), name)
	}
}

// TestManyShortLinesAreCheap: a program can color every line of a long output.
func TestManyShortLinesAreCheap(t *testing.T) {
	require.Less(t, testing.AllocsPerRun(100, func() { _ = plaintext.Strip("a \x1b[31mred\x1b[0m line") }), 10.0)
}

// TestWord checks that pasting a hint with an untrusted name runs nothing.
func TestWord(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"/w/my-dir.d/x_1": "/w/my-dir.d/x_1", "./a.yaml": "./a.yaml", "~/x": "~/x", "~/a b": "~/'a b'", "~root": "'~root'", "": "''",
		"a $(touch PWN) ;x": "'a $(touch PWN) ;x'", "a'b": `'a'\''b'`, "größe": "größe", "a\nb": "'a b'", "`x`": "'`x`'", "!x": "'!x'", "#x": "'#x'", "*": "'*'",
		"a\u202eb": "'a b'",
	} {
		require.Equal(t, want, plaintext.Word(s), "%q", s)
	}
}
