package cliagent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// remember acts as a program that remembers its conversations: it answers with the content of the file
// "says", and records in "heard" everything it was given. A mark is a number of messages.
func remember(dir string) int {
	args := os.Args[1:]
	id, how := last(args), args[len(args)-2]
	said, _ := os.ReadFile(filepath.Join(dir, "says"))
	prompt, _ := io.ReadAll(os.Stdin)
	var told []string
	if data, err := os.ReadFile(filepath.Join(dir, "told-"+id)); err == nil && json.Unmarshal(data, &told) != nil {
		return 3
	}
	if i := slices.Index(args, "--cut"); i >= 0 {
		n, _ := strconv.Atoi(args[i+1])
		told = told[:n]
	}
	if how == "--fork" {
		copies, _ := filepath.Glob(filepath.Join(dir, "told-*"))
		id = fmt.Sprintf("copy-%d", len(copies))
	}
	told = append(told, string(prompt))
	heard := strings.Join(told, "\n\n")
	told = append(told, string(said))
	data, _ := json.Marshal(told)
	if os.WriteFile(filepath.Join(dir, "heard"), []byte(heard), 0o600) != nil ||
		os.WriteFile(filepath.Join(dir, "told-"+id), data, 0o600) != nil {
		return 3
	}
	fmt.Printf("S %s\nT %s\nM %d\n.\n", id, said, len(told))
	return 0
}

func TestProgramsKnowOnlyTheirPast(t *testing.T) {
	t.Parallel()
	for name, can := range map[string]cliagent.Sessions{
		"goes on": {Preset: true}, "forks": {Preset: true, Forks: true}, "cuts": {Preset: true, Forks: true, Cuts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agentkittest.KnowsOnlyItsHistory(t, func(t *testing.T) agentkittest.FakeModel {
				a, dir := toy(), t.TempDir()
				a.Sessions = can
				return agentkittest.FakeModel{
					Scenario: agentkittest.Scenario{Environ: []string{"UWF_TOY_BIN=" + os.Args[0], playVariable + "=" + dir}},
					Agent:    func() agentkit.Options { return cliagent.Options(a) },
					Answers: func(word string, good bool) {
						if good {
							word = `---\n$status: done\nsummary: ` + word + `\n---\n`
						}
						require.NoError(t, os.WriteFile(filepath.Join(dir, "says"), []byte(word), 0o600))
					},
					LastRequest: func() string {
						heard, err := os.ReadFile(filepath.Join(dir, "heard"))
						require.NoError(t, err)
						return string(heard)
					},
				}
			})
		})
	}
}

// A session that is used while it is copied may have its new turns in the copy.
func TestSessionChangesDuringCopy(t *testing.T) {
	t.Parallel()
	a := toy()
	a.Sessions.Forks = true
	b := set(t, a, "").plays("S {session}\n"+good+"\n.", "S {session}\n"+good+"\n.", "S copy\nT I saw too much.\n!hang", "S {session}\n"+good+"\n.")
	b.step().Succeeded()
	fork := *b
	fork.Thread = b.Fork()
	command := a.Command
	fork.adapter.Command = func(c cliagent.Call) (cliagent.Invocation, error) {
		if c.Fork {
			b.step().Succeeded() // just while the copy is made
		}
		return command(c)
	}
	got := fork.step().Succeeded()
	calls := b.heard(4)
	require.Contains(t, calls[2].Args, "--fork")
	require.Contains(t, calls[3].Args, "--session")
	require.Contains(t, calls[3].Prompt, "the task")
	prosetest.Text(t, got.Detail.Outcome)
}
