package frontmatter

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/fuzztest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Texts that we parse differently from the original, and why.
var (
	// The original rejects these, although their meaning is clear.
	tolerated = map[string]string{
		"\n---\nstatus: done\n---\nBody":   "blank lines before the block",
		" ---\nstatus: done\n---\n":        "the original's kit trims the answer before it parses it",
		"\ufeff---\nstatus: done\n---\n":   "a byte order mark",
		"```\n---\nstatus: done\n---\n```": "a fence around the block",
		"--- \nstatus: done\n---\nBody":    "white space behind the marker",
	}
	// The original accepts these and loses data.
	refused = map[string]string{
		"---\nstatus: done\n--- trailing\nBody": "a closing line is only ---, else 'trailing' would be a body",
		"---\nkey without colon\n---\nx":        "the original reads this as no fields at all",
	}
	// The body differs.
	bodies = map[string]string{
		"---\r\nstatus: done\r\n---\r\nBody\r\n": "Body\n", // CRLF is a line ending, not part of a value
	}
)

func TestVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/frontmatter-parse.json")
	require.NoError(t, err)
	var cases []struct {
		Raw    string
		Parsed struct {
			Frontmatter map[string]any
			Body        string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		answer, err := Parse(c.Raw)
		wantFound := c.Parsed.Frontmatter != nil
		if tolerated[c.Raw] != "" || refused[c.Raw] != "" {
			require.NotEqual(t, wantFound, err == nil, "%q: %v", c.Raw, err)
			continue
		}
		require.Equal(t, wantFound, err == nil, "%q: %v", c.Raw, err)
		if !wantFound {
			continue
		}
		body, ok := bodies[c.Raw]
		if !ok {
			body = c.Parsed.Body
		}
		require.Equal(t, body, answer.Body, "%q", c.Raw)
		// The original knows one field with four words; we only split the text.
		if want, ok := c.Parsed.Frontmatter["status"].(string); ok {
			got, ok := answer.Fields["status"].(string)
			if list, isList := answer.Fields["status"].([]any); isList {
				got, ok = list[0].(string)
			}
			require.True(t, ok, "%q", c.Raw)
			require.Equal(t, want, strings.ToLower(strings.TrimSpace(got)), "%q", c.Raw)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const block = "---\na: 1\n---\n"
	ok := func(body string) Answer { return Answer{map[string]any{"a": int64(1)}, body} }
	for name, c := range map[string]struct {
		text string
		want Answer
	}{
		"plain":                      {block + "body\n", ok("body\n")},
		"no body":                    {"---\na: 1\n---", ok("")},
		"CR LF":                      {"---\r\na: 1\r\n---\r\n\r\nx\r\ny", ok("x\ny")},
		"white space behind the end": {"---\na: 1\n--- \nx", ok("x")},
		"a rule in the body":         {block + "x\n---\ny", ok("x\n---\ny")},
		"fence around the block":     {"```yaml\n" + block + "```\n\nbody", ok("body")},
		"fence around the whole":     {"```markdown\n" + block + "\nbody\n```\n", ok("body")},
		"tildes":                     {"~~~\n" + block + "~~~\nbody", ok("body")},
		"fence never closed":         {"```\n" + block + "body", ok("body")},
		"fence, then a code block":   {"```md\n" + block + "see\n```go\nx\n```\n```", ok("see\n```go\nx\n```")},
		"a code block in the body":   {block + "```go\nx\n```", ok("```go\nx\n```")},
		"empty":                      {"---\n---\nx", Answer{map[string]any{}, "x"}},
		"only a comment":             {"---\n# nothing\n---\n", Answer{map[string]any{}, ""}},
		"a local tag is ignored":     {"---\na: !x 1\n---\n", Answer{map[string]any{"a": "1"}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(c.text)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text string }{
		"text before":    {"Here it is:\n---\na: 1\n---\n"},
		"nothing":        {""},
		"only a fence":   {"```yaml\na: 1\n```"},
		"never closed":   {"\n---\na: 1\n"},
		"two colons":     {"\n---\nb: 2\na: x: y\n---\n"},
		"twice":          {"---\na: 1\na: 2\n---\n"},
		"within a fence": {"```yaml\n\n---\n- a\n---\n```"},
		"reserved":       {"---\na: @x\n---\n"},
		"after the end":  {"---\na: 1\n...\nb: 2\n---\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(c.text)
			prosetest.Error(t, err)
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"---\na: 1\n---\nx", "```\n---\n---\n```", "~~~x\n---\n\xff\n---", "---\r\n---", "\ufeff\n---\n- ["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzztest.Bounded(t)()
		answer, err := Parse(text)
		if err == nil && !strings.Contains(text, "\r") && !strings.HasSuffix(strings.TrimRight(text, " \t\n"), answer.Body) {
			require.Contains(t, text, answer.Body)
		}
		if err == nil {
			body, ok := Body(text)
			require.True(t, ok)
			require.Equal(t, answer.Body, body)
		}
	})
}
