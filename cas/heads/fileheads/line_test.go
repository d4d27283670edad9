package fileheads

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fuzzing"
	"github.com/united-workforce/uwf/util/yamldoc"
)

func TestLine(t *testing.T) {
	t.Parallel()
	const h = "4EAEYQKFHTJ23"
	for _, c := range []struct {
		key, hash, want string
	}{
		{"01K8ZQ4V9X6D3M2N1P0R7S5T8W", h, "01K8ZQ4V9X6D3M2N1P0R7S5T8W: " + h},
		{"solve-issue", h, "solve-issue: " + h},
		{"v1.2_x", h, "v1.2_x: " + h},
		{"a: b", h, `"a: b": ` + h},
		{"#1", h, `"#1": ` + h},
		{"true", h, `"true": ` + h},
		{"No", h, `"No": ` + h},
		{"12E4", h, `"12E4": ` + h},
		{"2026-11-21", h, `"2026-11-21": ` + h},
		{"0x10", h, `"0x10": ` + h},
		{"überprüfen", h, `"überprüfen": ` + h},
		{"a\nb", h, `"a\nb": ` + h},
		{`say "x"`, h, `"say \"x\"": ` + h},
		{"x", "1234567890123", `x: "1234567890123"`},
		{"x", "12E4567890123", `x: "12E4567890123"`},
	} {
		e := newEntry(c.key, protocol.Hash(c.hash))
		require.NoError(t, checkEntry(e.key, e.hash))
		line := string(appendLine(nil, e))
		require.Equal(t, c.want+"\n", line)
		got, ok := parseLine(c.want)
		require.True(t, ok, c.want)
		require.Equal(t, e, got)
	}
}

func TestNotALineOfOurs(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "x", "x:", "x: ", ": 4EAEYQKFHTJ23", "x:4EAEYQKFHTJ23", "x: 4EAEYQKFHTJ2", "x: 4EAEYQKFHTJ234",
		"x: ZEAEYQKFHTJ23", "x: 4EAEYQKFHTJ2U", " x: 4EAEYQKFHTJ23", "x : 4EAEYQKFHTJ23", "x:  4EAEYQKFHTJ23",
		"true: 4EAEYQKFHTJ23", "12: 4EAEYQKFHTJ23", "x: 1234567890123", `"": 4EAEYQKFHTJ23`, `"x: 4EAEYQKFHTJ23`,
		"x: 4EAEYQKFHTJ23 # note", "- x: 4EAEYQKFHTJ23", "{x: 4EAEYQKFHTJ23}", "? x", "'x': 4EAEYQKFHTJ23",
	} {
		_, ok := parseLine(line)
		require.False(t, ok, "%q", line)
	}
}

// FuzzLine: what is written is read back, by the line scanner and by YAML.
func FuzzLine(f *testing.F) {
	for _, key := range []string{"01K8ZQ4V9X6D3M2N1P0R7S5T8W", "solve-issue", "a: b", "null", "\t", "\x7f", "\u2028", "'", "0o7", "-", "1_000", "\U0001f600", "\\", "é"} {
		f.Add(key, "4EAEYQKFHTJ23")
		f.Add(key, "1234567890123")
	}
	f.Fuzz(func(t *testing.T, key, hash string) {
		defer fuzzing.Bounded(t)()
		e := newEntry(key, protocol.Hash(hash))
		if checkEntry(e.key, e.hash) != nil {
			return
		}
		line := appendLine(nil, e)
		require.Equal(t, 1, strings.Count(string(line), "\n"))
		got, ok := parseLine(strings.TrimSuffix(string(line), "\n"))
		require.True(t, ok, "%q", line)
		require.Equal(t, e, got)

		doc, err := yamldoc.Parse(line, yamldoc.Bounds{})
		require.NoError(t, err, "%q", line)
		require.Len(t, doc.Root.Entries, 1)
		require.Equal(t, key, doc.Root.Entries[0].Key, "%q", line)
		require.Equal(t, hash, doc.Root.Entries[0].Value.Value(), "%q", line)
	})
}

// FuzzTable: whatever a file says, reading it neither fails nor loses a line
// that it cannot read, and what it has written it reads as the same.
func FuzzTable(f *testing.F) {
	for _, text := range []string{
		"a: 4EAEYQKFHTJ23\nb: 108DB063KRQWW\n", "# note\n\nb: 4EAEYQKFHTJ23\na: 4EAEYQKFHTJ23", "{a: 4EAEYQKFHTJ23}", "a: {head: 4EAEYQKFHTJ23}\n",
		"a: 4EAEYQKFHTJ23\na: 108DB063KRQWW\n", "a: 4EAE\n", "\ufeffa: 4EAEYQKFHTJ23\r\n", "[", "a:\n  - b\n", "null", "a: 4EAEYQKFHTJ23\ngarbage\n", "\v\n&0", "\n\ufeff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzing.Bounded(t)()
		table := parseTable("f", text, anyKey)
		for _, e := range table.entries {
			h, err := table.get(e.key)
			require.NoError(t, err)
			require.Equal(t, e.hash, h)
		}
		if table.writable() != nil {
			return
		}
		again := parseTable("f", string(table.render()), anyKey)
		require.Equal(t, append([]entry{}, table.entries...), append([]entry{}, again.entries...))
		if len(again.entries) > 0 || len(again.bad) > 0 { // otherwise what is left is an empty document to YAML, such as a lone anchor
			require.Len(t, again.bad, len(table.bad))
		}
	})
}
