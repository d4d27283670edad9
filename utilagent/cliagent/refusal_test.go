package cliagent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

func TestAConfinedProgramThatFails(t *testing.T) {
	t.Parallel()
	hints := []string{
		`to let claude write elsewhere: uwf config set agents.mine.sandbox.allowWrite '["…"]'`,
		"to let it write anywhere: uwf config set agents.mine.sandbox.mode none",
	}
	for _, c := range []struct {
		name  string
		out   Outcome
		hints []string
	}{
		{"all is well", Outcome{Kind: OK}, nil},
		{"it says why", Outcome{Kind: Failed, Error: errorkind.Denied, Message: "/srv/x.db: Read-only file system"}, hints},
		{"it ends without a word", Outcome{Kind: Failed, Error: Crashed}, hints},
		{"it does not end", Outcome{Kind: Timeout}, hints},
		{"another reason", Outcome{Kind: Failed, Error: errorkind.RateLimit, Message: "429"}, nil},
		{"its model fails", Outcome{Kind: Failed, Error: errorkind.Server, Message: "500"}, nil},
	} {
		r := &runner{adapter: Adapter{Program: "claude"}, req: &agentkit.Request{Alias: "mine"}, env: env.Env{Environ: []string{"UWF_AGENT=mine"}}, confinement: &confinement{}}
		require.Equal(t, c.hints, r.sandboxHints(tried{Outcome: c.out}), c.name)
		r.confinement = nil
		require.Empty(t, r.sandboxHints(tried{Outcome: c.out}), "it was not confined")
	}
}
