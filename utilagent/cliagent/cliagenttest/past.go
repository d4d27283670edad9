package cliagenttest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// asked records how a program was started.
type asked struct {
	Args  []string
	Stdin string
}

// note records a start in a file for the test.
func (s script) note(args []string, stdin io.Reader) error {
	if s.Asked == "" {
		return nil
	}
	prompt, err := readPrompt(args, stdin)
	if err != nil {
		return err
	}
	data, err := json.Marshal(asked{Args: args, Stdin: prompt})
	if err != nil {
		return err
	}
	earlier, err := filepath.Glob(filepath.Join(s.Asked, "*"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Asked, strconv.Itoa(1000+len(earlier))), data, 0o600)
}

// readPrompt reads the prompt: all of stdin, or a line if more messages follow while it works.
func readPrompt(args []string, stdin io.Reader) (string, error) {
	if slices.Contains(args, "--replay-user-messages") {
		return bufio.NewReader(stdin).ReadString('\n')
	}
	text, err := io.ReadAll(stdin)
	return string(text), err
}

// checkPast forks and pokes a thread whose session has moved on. The program must not continue in that
// session unless it gets the position at which to cut it.
func (c Case) checkPast(t *testing.T, a cliagent.Adapter) {
	a = fault{}.adapt(a)
	s := script{Version: a.Program + " " + c.Version, Help: c.help(), Stdout: c.Stdout, Stderr: []byte(c.Stderr), Asked: t.TempDir()}
	th := agentkittest.New(t, scenario(a, s.file(t), "The task."))
	visit := func(th *agentkittest.Thread) *agentkittest.Outcome { return th.Run(cliagent.Options(a)).Succeeded() }
	first := visit(th)
	visit(th)
	for what, again := range map[string]func() *agentkittest.Outcome{
		"fork": func() *agentkittest.Outcome { return visit(th.ForkAt(first.Result.StepHash)) },
		"poke": func() *agentkittest.Outcome { return th.Poke(cliagent.Options(a), "Do it otherwise.").Succeeded() },
	} {
		before := len(s.starts(t))
		got := again()
		calls := s.starts(t)[before:]
		require.NotEmpty(t, calls, what)
		for _, call := range calls {
			if !slices.Contains(call.Args, first.Step.SessionID) {
				require.Contains(t, call.Stdin+"\n"+join(call.Args), "The task.", "%s: the whole prompt", what)
				continue
			}
			require.True(t, a.Sessions.Cuts, "%s goes on in a session that has seen more: %q", what, call.Args)
			require.Subset(t, call.Args, []string{c.mark(t, a)}, what)
		}
		if a.Sessions.None || a.Sessions.Optional {
			continue
		}
		require.Contains(t, got.Detail.Outcome, "session: started over, because session ", what)
	}
}

// mark returns the mark at the end of the recorded run.
func (c Case) mark(t *testing.T, a cliagent.Adapter) string {
	_, o := decode(a, c.call(), c.Stdout, c.exit())
	require.NotEmpty(t, o.Mark)
	return o.Mark
}

// starts returns the recorded starts of the program.
func (s script) starts(t *testing.T) []asked {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Asked, "*"))
	require.NoError(t, err)
	var all []asked
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var one asked
		require.NoError(t, json.Unmarshal(data, &one))
		all = append(all, one)
	}
	return all
}

func join(args []string) (text string) {
	for _, arg := range args {
		text += arg + "\n"
	}
	return text
}
