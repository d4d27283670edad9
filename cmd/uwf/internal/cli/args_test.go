package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestReorder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"thread start wf -p hi", "thread start -p hi -- wf"},
		{"thread start -p hi wf", "thread start -p hi -- wf"},
		{"thread start wf --prompt=hi --cwd /x", "thread start --prompt=hi --cwd /x -- wf"},
		{"thread list --format json --all", "--format json thread list --all"},
		{"thread list --all --format=json", "--format=json thread list --all"},
		{"thread start wf -p -", "thread start -p - -- wf"},
		{"thread start -p --weird wf", "thread start -p --weird -- wf"},
		{"thread start -p hi -- --wf", "thread start -p hi -- --wf"},
		{"thread step X --help", "thread step --help"},
		{"thread step thread", "thread step -- thread"}, // a thread may have the name of a command
		{"-V", "-V"},
		// A command's own --format wins, at any position.
		{"workflow validate f.yaml --format github", "workflow validate --format github -- f.yaml"},
		{"--format github -q workflow validate f.yaml", "-q workflow validate --format github -- f.yaml"},
	} {
		a := commands{&app.App{Env: env.Env{}}}
		got, err := cmdline.Reorder(a.root(), strings.Fields(c.in))
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, strings.Join(got, " "), c.in)
	}
}

func TestReorderRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"thread start wf --promt x",
		"thread list --limit",
		"--colour thread list",
	} {
		a := commands{&app.App{Env: env.Env{}}}
		_, err := cmdline.Reorder(a.root(), strings.Fields(in))
		prosetest.Error(t, err, in)
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUsage})
	}
}
