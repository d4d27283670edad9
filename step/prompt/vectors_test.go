package prompt_test

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/prosetest"
)

// The vectors contain the original's output. We keep its facts and structure: headings, fields, steps, order.
// The table in each test explains intended differences.

func load[T any](t *testing.T, name string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var cases []T
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.NotEmpty(t, cases)
	return cases
}

var (
	variantHeading = regexp.MustCompile("(?m)^### When `.*`$")
	fieldBullet    = regexp.MustCompile("(?m)^  - `[^`]*`( \\(required\\))?")
	exampleBlock   = regexp.MustCompile("(?s)```\n---\n(.*?)\n?(?:---)?\n\n\\.\\.\\. your markdown work here \\.\\.\\.\n```")
)

type instruction struct{ Variants, Fields, Examples []string }

func readInstruction(text string) instruction {
	in := instruction{
		Variants: variantHeading.FindAllString(text, -1),
		Fields:   fieldBullet.FindAllString(text, -1),
	}
	for _, m := range exampleBlock.FindAllStringSubmatch(text, -1) {
		// The original's block without fields is never closed; ours is empty.
		if m[1] != "" {
			in.Examples = append(in.Examples, strings.TrimSpace(m[1]))
		}
	}
	return in
}

func TestFormatInstructionVectors(t *testing.T) {
	t.Parallel()
	// For a constant that isn't an enum, the original writes <value>, and models answered with that (pitfall
	// P-43). We write the constant.
	constants := map[int][]string{
		2: {"$status: ready  # required | fixed value"},
		4: {"$status: true  # fixed value\nn: 5  # fixed value", "$status: false  # fixed value\nn: 6  # fixed value"},
	}
	type vector struct {
		Schema any
		Text   string
	}
	for i, c := range load[vector](t, "output-format-instruction.json") {
		got, want := prompt.FormatInstruction(c.Schema), readInstruction(c.Text)
		if examples, ok := constants[i]; ok {
			want.Examples = examples
		}
		require.Equal(t, want, readInstruction(got), "case %d", i)
		prosetest.Text(t, got)
		prosetest.Text(t, got)
	}
}

func TestRolePromptVectors(t *testing.T) {
	t.Parallel()
	type vector struct {
		Role protocol.Role
		Text string
	}
	reference := regexp.MustCompile(`(?s)# uwf CLI Reference.*is hashed\.\n`)
	blankLines := regexp.MustCompile(`\n{3,}`)
	for i, c := range load[vector](t, "role-prompt.json") {
		want := reference.ReplaceAllLiteralString(c.Text, protocol.Reference())
		if strings.TrimSpace(c.Role.Goal) == "" { // the original keeps blank sections
			want = strings.ReplaceAll(want, "## Goal\n\n"+c.Role.Goal+"\n\n", "")
		}
		if strings.TrimSpace(c.Role.Output) == "" {
			want = strings.TrimSuffix(want, "## Output\n\n"+c.Role.Output)
		}
		want = strings.TrimSpace(blankLines.ReplaceAllString(want, "\n\n"))
		require.Equal(t, want, prompt.RolePrompt(c.Role), "case %d", i)
	}
}

func TestContinuationVectors(t *testing.T) {
	t.Parallel()
	// The original renumbers the remaining steps from the first omitted one (bug L-11); ours keep their
	// numbers.
	renumbered := map[int][2]string{4: {"Step 2: b", "Step 3: b"}, 6: {"Step 1: b", "Step 2: b"}}
	type vector struct {
		Steps []struct {
			Role, Agent string
			Output      any
			Content     *string
		}
		Role, EdgePrompt, Text string
		Options                *struct {
			IncludeContent bool
			Quota          int
		}
	}
	for i, c := range load[vector](t, "continuation-prompt.json") {
		var since []prompt.Step // newest first
		for n := len(c.Steps) - 1; n >= 0 && c.Steps[n].Role != c.Role; n-- {
			s := prompt.Step{Number: n + 1, Role: c.Steps[n].Role, Agent: c.Steps[n].Agent, Output: c.Steps[n].Output}
			if c.Options != nil && c.Options.IncludeContent && c.Steps[n].Content != nil {
				s.Content = *c.Steps[n].Content
			}
			since = append(since, s)
		}
		quota := 0
		if c.Options != nil {
			quota = c.Options.Quota
		}
		history, err := prompt.History(seq(since), quota)
		require.NoError(t, err)

		want := c.Text
		if r, ok := renumbered[i]; ok {
			want = strings.Replace(want, r[0], r[1], 1)
		}
		got := prompt.Continuation(prompt.Parts{
			RoleName: c.Role, EdgePrompt: c.EdgePrompt, Continuing: true,
			History: history, Omitted: len(since) - len(history),
		})
		require.Equal(t, want, promptquote.Plain(got), "case %d: what an agent has written is quoted", i)
	}
}

func seq(steps []prompt.Step) iter.Seq2[prompt.Step, error] {
	return func(yield func(prompt.Step, error) bool) {
		for _, s := range steps {
			if !yield(s, nil) {
				return
			}
		}
	}
}
