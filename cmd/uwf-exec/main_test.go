package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

func TestMain(m *testing.M) { cliagenttest.Main(m) }

// The recorded runs come from simple made-up programs.
func TestAdapter(t *testing.T) {
	t.Parallel()
	cliagenttest.Run(t, adapter(&options{}), cliagenttest.Load(t, "testdata/fixtures"))
}

func TestParse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"": "",
		"--session=id:(\\S+) --resume=-r_{session}": "",
		"--session id:(x) --resume r more":          "",
		"--session (":                               "--session: error parsing regexp",
		"--session id --resume r":                   "missing group",
		"--session (x)":                             "must be used together",
		"--resume x":                                "must be used together",
		"--session":                                 "--session needs a value",
	} {
		rest, err := (&options{}).parse(strings.Fields(args))
		if want != "" {
			require.ErrorContains(t, err, want, args)
			continue
		}
		require.NoError(t, err, args)
		require.Equal(t, strings.Contains(args, "more"), len(rest) == 1)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	o := &options{resume: []string{"--continue", "{session}"}}
	call := cliagent.Call{Prompt: "the prompt", Extra: []string{"-m", "model"}}
	inv, err := o.command(call)
	require.NoError(t, err)
	require.Equal(t, []string{"-m", "model"}, inv.Args)
	prosetest.Text(t, inv.Stdin)

	call.Extra, call.Resume, call.Session = []string{"ask", "--text={prompt}"}, true, "s1"
	inv, err = o.command(call)
	require.NoError(t, err)
	prosetest.Text(t, inv.Args)
	require.Empty(t, inv.Stdin)
}

func TestDecoder(t *testing.T) {
	t.Parallel()
	o := &options{}
	_, err := o.parse([]string{"--session", `(?i)session[ :]+(\S+)`, "--resume", "x"})
	require.NoError(t, err)
	seen, err := cliagent.Replay(t.Context(), adapter(o), cliagent.Call{},
		strings.NewReader("session: first\n\x1b[1m---\nstatus: done\x1b[0m\n---\n\nIn session: second it was done.\n"), cliagent.Exit{})
	require.NoError(t, err)
	require.Equal(t, "---\nstatus: done\n---\n\nIn session: second it was done.", seen.Answer, "a line with nothing but the id is no part of the answer")
	require.Equal(t, "second", seen.Session)
	require.Empty(t, seen.Turns)

	seen, err = cliagent.Replay(t.Context(), adapter(o), cliagent.Call{}, strings.NewReader("half an ans"), cliagent.Exit{Code: 2, Stderr: "SESSION third\nno api key set"})
	require.NoError(t, err)
	require.Equal(t, cliagent.Failed, seen.Kind)
	require.Equal(t, errorkind.Auth, seen.Error)
	require.Contains(t, seen.Message, "half an ans")
}

// Many programs color their output although no terminal reads it.
func TestColoredSession(t *testing.T) {
	t.Parallel()
	o := &options{}
	_, err := o.parse([]string{"--session", `Session: (\S+)`, "--resume", "x"})
	require.NoError(t, err)
	const line = "\x1b[2mSession: \x1b[36mabc\x1b[0m"
	for _, c := range []struct{ stdout, stderr string }{{"yes\n", line}, {line + "\nyes\n", ""}} {
		seen, err := cliagent.Replay(t.Context(), adapter(o), cliagent.Call{}, strings.NewReader(c.stdout), cliagent.Exit{Stderr: c.stderr})
		require.NoError(t, err)
		require.Equal(t, "abc", seen.Session)
		require.Equal(t, "yes", seen.Answer)
	}
}

// A line may end exactly at the limit, and more lines may follow.
func TestAnswerAsLongAsTheLimit(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", "\n", "\nmore\n", "\n\nmore\n"} {
		seen, err := cliagent.Replay(t.Context(), adapter(&options{}), cliagent.Call{}, strings.NewReader(strings.Repeat("x", maxAnswer)+rest), cliagent.Exit{})
		require.NoError(t, err)
		require.Equal(t, cliagent.OK, seen.Kind)
		require.Equal(t, strings.Contains(rest, "more"), strings.Contains(seen.Answer, "continues"), "%q", rest)
	}
}

// A command run by a shell is a single quoted argument.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	got := agentkittest.Run(t, cliagent.Options(adapter(&options{})), agentkittest.Scenario{
		Args: []string{"--", "sh", "-c", `cat >prompt; grep -c "the task" prompt >&2; printf -- '---\n$status: done\n---\n%s' "$1"`, "--", "it is done"},
		Task: "the task",
	}).Succeeded()
	require.Equal(t, "---\n$status: done\n---\nit is done", got.Content)
	require.Equal(t, "sh", got.Detail.AgentVersion)
	require.Equal(t, "final", string(got.Detail.Capture))
	require.Nil(t, got.Step.Usage)
	without := agentkittest.Run(t, cliagent.Options(adapter(&options{})), agentkittest.Scenario{})
	require.Equal(t, 2, without.ExitCode)
	prosetest.Text(t, without.Stderr)
}
