package fileheads

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fuzztest"
)

func TestLine(t *testing.T) {
	t.Parallel()
	const h = "4EAEYQKFHTJ23"
	for key, want := range map[string]string{
		"01K8ZQ4V9X6D3M2N1P0R7S5T8W": "01K8ZQ4V9X6D3M2N1P0R7S5T8W", "solve-issue": "solve-issue", "v1.2_x": "v1.2_x",
		"true": `"true"`, "No": `"No"`, "12E4": `"12E4"`, "2026-11-21": `"2026-11-21"`, "0x10": `"0x10"`, "überprüfen": `"überprüfen"`,
	} {
		line := string(new(table).appendLine(nil, entry{key: key, hash: h}))
		require.Equal(t, want+": "+h+"\n", line)
		got, reason := parseLine(strings.TrimSpace(line))
		require.Empty(t, reason)
		require.Equal(t, entry{key: key, hash: h}, got)
	}
	for _, line := range []string{"'x': 4EAEYQKFHTJ23", `x: "4EAEYQKFHTJ23"`, "x: 4EAEYQKFHTJ23 # note", "x:  4eaeyqkfhtj23"} {
		got, reason := parseLine(line)
		require.Empty(t, reason)
		require.Equal(t, entry{key: "x", hash: h}, got)
	}
	for _, line := range []string{
		"x", "x:", ": 4EAEYQKFHTJ23", "x:4EAEYQKFHTJ23", "x: 4EAEYQKFHTJ2", "x: 4EAEYQKFHTJ234", "x: ZEAEYQKFHTJ23", `"": 4EAEYQKFHTJ23`,
		`"x: 4EAEYQKFHTJ23`, "- x: 4EAEYQKFHTJ23", "{x: 4EAEYQKFHTJ23}", "? x", "x: y: 4EAEYQKFHTJ23",
	} {
		_, reason := parseLine(line)
		require.NotEmpty(t, reason, "%q", line)
	}
}

// A line as uwf writes it is read without a JSON parser, and as by one; all others by one.
func TestPlainEnd(t *testing.T) {
	t.Parallel()
	for _, status := range []protocol.Status{protocol.StatusCompleted, protocol.StatusFailed, protocol.StatusCancelled} {
		e := heads.Ended{Thread: "01K8ZQ4V9X6D3M2N1P0R7S5T8W", Workflow: "4EAEYQKFHTJ23", Head: "108DB063KRQWW", Status: status, CompletedAt: 12}
		object, err := json.Marshal(lineOf(e))
		require.NoError(t, err)
		line := bytes.TrimSuffix(summed(object), []byte("\n"))
		got, ok := plainEnd(string(line))
		require.True(t, ok)
		require.Equal(t, lineOf(e), got)
		for at := range line {
			for _, c := range []byte(`0"\ a,}`) {
				other := bytes.Clone(line)
				other[at] = c
				if got, ok := plainEnd(string(other)); ok {
					var want endLine
					require.NoError(t, json.Unmarshal(other, &want), "%s", other)
					require.Equal(t, want, got)
				}
			}
			_, ok := plainEnd(string(line[:at]))
			require.False(t, ok)
		}
	}
}

// FuzzTable checks that, for any file content, reading neither fails nor loses an unreadable line, and that
// written content reads back the same, also as YAML.
func FuzzTable(f *testing.F) {
	for _, text := range []string{
		"a: 4EAEYQKFHTJ23\nb: 108DB063KRQWW\n", "# note\n\nb: 4EAEYQKFHTJ23\na: 4EAEYQKFHTJ23", "{a: 4EAEYQKFHTJ23}",
		"a: 4EAEYQKFHTJ23\na: 108DB063KRQWW\n", "a: 4EAE\n", "\ufeffa: 4EAEYQKFHTJ23\r\n", "[", "a:\n  - b\n", "null", "a: 4EAEYQKFHTJ23\ngarbage\n",
		sumPrefix + "00000000\na: 4EAEYQKFHTJ23\n", sumPrefix, sumPrefix + "00000000" + withFacts, sumPrefix + "00000000, with 000000000012 bytes of facts.jsonl",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		for _, threads := range []bool{false, true} {
			first := parseTable("f", []byte(text), threads)
			for _, e := range first.entries {
				h, err := first.get(e.key)
				require.NoError(t, err)
				require.Equal(t, e.hash, h)
			}
			again := parseTable("f", first.render(), threads)
			again.ensureParsed()
			keys := func(x *table) (keys []string) {
				for key, h := range x.all {
					keys = append(keys, key+": "+string(h))
				}
				return keys
			}
			require.Equal(t, keys(first), keys(again))
			require.Len(t, again.bad, len(first.bad))
		}
	})
}
