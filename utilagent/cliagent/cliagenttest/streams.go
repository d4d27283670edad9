package cliagenttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// streamsFile contains handwritten streams in a program's documented formats, for cases without a recorded
// run. It consists of sections:
//
//	== a name
//	> version 2.1.329
//	> resume SESSION
//	> exit 1
//	> stderr a line of it
//	{"type":…}
//	= ok; session s
//	= assistant: I look first. [Bash t1 {"command":"ls"}]
//	= answer: …
//
// Lines with ">" describe the call and its exit, those with "=" the adapter's interpretation; all others are
// the stream itself. With the flag -update the test writes the "=" lines for review.
const streamsFile = "testdata/streams.txt"

// stream is a section of the file.
type stream struct {
	name  string
	facts []string
	lines []string
	want  []string
	call  cliagent.Call
	exit  cliagent.Exit
}

// Streams tests an adapter with the streams in testdata/streams.txt, also in equivalent forms: other line
// endings, blank lines, reordered fields, unknown fields and lines. The result must be the same.
func Streams(t *testing.T, a cliagent.Adapter) {
	t.Helper()
	list := loadStreams(t)
	require.NotEmpty(t, list)
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		writeStreams(t, a, list)
	}
	for _, s := range list {
		t.Run("stream/"+s.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, s.want, s.seen(t, a, strings.Join(s.lines, "\n")+"\n"))
			for name, text := range s.forms() {
				require.Equal(t, s.want, s.seen(t, a, text), "in the form: %s\n%s", name, text)
			}
		})
	}
}

// loadStreams reads the file of the tested package, if there is one.
func loadStreams(t testing.TB) []*stream {
	t.Helper()
	data, err := os.ReadFile(streamsFile)
	if err != nil {
		return nil
	}
	var list []*stream
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			list = append(list, &stream{name: name})
			continue
		}
		require.NotEmpty(t, list, "%s begins with == and a name", streamsFile)
		list[len(list)-1].take(line)
	}
	for _, s := range list {
		for len(s.lines) > 0 && s.lines[len(s.lines)-1] == "" {
			s.lines = s.lines[:len(s.lines)-1] // between sections
		}
		s.called(t)
	}
	return list
}

func (s *stream) take(line string) {
	if fact, ok := strings.CutPrefix(line, "> "); ok {
		s.facts = append(s.facts, fact)
	} else if want, ok := strings.CutPrefix(line, "= "); ok {
		s.want = append(s.want, want)
	} else if len(s.want) == 0 {
		s.lines = append(s.lines, line)
	}
}

// called builds the call and its exit from the ">" lines.
func (s *stream) called(t testing.TB) {
	s.call = cliagent.Call{Prompt: "the prompt", Env: func(string) string { return "" }}
	for _, fact := range s.facts {
		key, value, _ := strings.Cut(fact, " ")
		switch key {
		case "version":
			s.call.Version = cliagent.ParseVersion(value)
		case "help":
			s.call.Help = value
		case "resume", "fork":
			s.call.Resume, s.call.Session, s.call.Fork = true, value, key == "fork"
		case "turns":
			n, err := strconv.Atoi(value)
			require.NoError(t, err, fact)
			s.call.MaxTurns = n
		case "exit":
			n, err := strconv.Atoi(value)
			require.NoError(t, err, fact)
			s.exit.Code = n
		case "killed":
			s.exit.Code, s.exit.Signal = -1, "killed"
		case "stopped":
			s.exit.Code, s.exit.Stopped = -1, true
		case "stderr":
			s.exit.Stderr += value + "\n"
		default:
			require.Fail(t, "nobody knows this fact", "%s: %s", s.name, fact)
		}
	}
}

// isJSON reports whether the stream is made of JSON objects.
func (s *stream) isJSON() bool {
	for _, line := range s.lines {
		if !json.Valid([]byte(line)) {
			return false
		}
	}
	return true
}

// forms returns equivalent forms of the stream.
func (s *stream) forms() map[string]string {
	join := func(sep string) string { return strings.Join(s.lines, sep) }
	forms := map[string]string{
		"CR LF":           join("\r\n") + "\r\n",
		"no last end":     join("\n"),
		"byte order mark": "\ufeff" + join("\n") + "\n",
	}
	if s.isJSON() {
		forms["blank lines"] = join("\n\n \n") + "\n\n"
		forms["fields of the future, in another order"] = strings.Join(shuffled(s.lines), "\n") + "\n"
		forms["lines of the future"] = join("\n{\"type\":\"of_the_future\",\"content\":{\"a\":1}}\n") + "\n"
	}
	return forms
}

// shuffled returns objects with reordered and additional fields.
func shuffled(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		var object map[string]json.RawMessage
		if out[i] = line; json.Unmarshal([]byte(line), &object) == nil {
			object["of_the_future"] = json.RawMessage(`{"type":"x"}`)
			data, _ := json.Marshal(object) // sorted by name
			out[i] = string(data)
		}
	}
	return out
}

// seen returns the adapter's interpretation of one form of the stream.
func (s *stream) seen(t *testing.T, a cliagent.Adapter, text string) []string {
	seen, err := cliagent.Replay(t.Context(), a, s.call, strings.NewReader(text), s.exit)
	require.NoError(t, err)
	first := string(seen.Kind)
	if seen.Error != "" {
		first += " " + string(seen.Error)
	}
	for _, part := range [][2]string{{"session", seen.Session}, {"model", seen.Model}, {"message", oneLine(seen.Message)}, {"hint", seen.Hint}} {
		if part[1] != "" {
			first += "; " + part[0] + " " + part[1]
		}
	}
	if !seen.ResetsAt.IsZero() {
		first += "; resets at " + seen.ResetsAt.UTC().Format(time.RFC3339)
	}
	out := []string{fmt.Sprintf("%s; %d messages", first, seen.Worked)}
	for _, turn := range seen.Turns {
		out = append(out, turnLine(turn))
	}
	if seen.Value != nil {
		out = append(out, "value: "+jsonText(seen.Value))
	}
	if seen.Answer != "" {
		out = append(out, "answer: "+oneLine(seen.Answer))
	}
	if seen.Usage.Usage != nil {
		out = append(out, usageLine(seen.Usage))
	}
	return out
}

func turnLine(t protocol.Turn) string {
	text := string(t.Role)
	if t.ToolCallID != "" {
		text += " " + oneLine(t.ToolCallID)
	}
	text += ":"
	if t.Reasoning != "" {
		text += " (" + oneLine(t.Reasoning) + ")"
	}
	if t.Content != "" {
		text += " " + oneLine(t.Content)
	}
	for _, c := range t.ToolCalls {
		text += fmt.Sprintf(" [%s %s %s]", c.Name, oneLine(c.ID), jsonText(c.Args))
	}
	return text
}

func usageLine(u cliagent.Usage) string {
	text := fmt.Sprintf("usage: in %d, read %d, written %d, out %d, reasoning %d", u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens, u.ReasoningTokens)
	if u.CostUSD != nil {
		text += fmt.Sprintf(", $%.6g", *u.CostUSD)
	}
	if u.TokensOfSession {
		text += ", tokens of the session"
	}
	if u.CostOfSession {
		text += ", cost of the session"
	}
	return text
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// oneLine formats a text as one line.
func oneLine(s string) string {
	const longest = 300
	if len(s) > longest {
		s = fmt.Sprintf("%s… (%d bytes)", s[:longest], len(s))
	}
	quoted := strconv.Quote(s)
	if inner := quoted[1 : len(quoted)-1]; inner == s {
		return s
	}
	return quoted
}

// writeStreams rewrites the file with the adapter's interpretation of each stream.
func writeStreams(t *testing.T, a cliagent.Adapter, list []*stream) {
	var b bytes.Buffer
	for i, s := range list {
		s.want = s.seen(t, a, strings.Join(s.lines, "\n")+"\n")
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "== %s\n", s.name)
		for _, part := range []struct {
			mark  string
			lines []string
		}{{"> ", s.facts}, {"", s.lines}, {"= ", s.want}} {
			for _, line := range part.lines {
				b.WriteString(part.mark + line + "\n")
			}
		}
	}
	require.NoError(t, os.WriteFile(streamsFile, b.Bytes(), 0o644))
}
