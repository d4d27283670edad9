package cliagent

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

func TestAConfinedProgramThatIsRefused(t *testing.T) {
	t.Parallel()
	const allow, off = `claude runs confined and cannot write everywhere. If it needs that file: uwf config set agents.mine.sandbox.allowWrite '["PATH"]'`,
		"uwf config set agents.mine.sandbox.mode none lets it write anywhere"
	for _, c := range []struct {
		name, stderr string
		out          tried
		said         string
		hints        []string
	}{
		{name: "all is well", out: tried{Outcome: Outcome{Kind: OK}}},
		{
			name: "a refusal that does not matter", stderr: "begin\n\x1b[31mError: EACCES: permission denied, open '/home/u/.cfg/x'\x1b[0m\nmore: Permission denied\n",
			out: tried{Outcome: Outcome{Kind: OK}}, said: "Error: EACCES: permission denied, open '/home/u/.cfg/x'",
			hints: []string{strings.Replace(allow, "PATH", "/home/u/.cfg/x", 1), off},
		},
		{
			name: "the program says it itself", out: tried{Outcome: Outcome{Kind: Failed, Error: errorkind.Denied, Message: "cannot start\n/srv/x.db: Read-only file system"}},
			said: "/srv/x.db: Read-only file system", hints: []string{strings.Replace(allow, "PATH", "/srv/x.db", 1), off},
		},
		{
			name: "a shell's script", stderr: "/usr/bin/agent: 3: cannot create /srv/log: Permission denied", out: tried{Outcome: Outcome{Kind: Failed, Error: errorkind.Denied}},
			said: "/usr/bin/agent: 3: cannot create /srv/log: Permission denied", hints: []string{strings.Replace(allow, "PATH", "/srv/log", 1), off},
		},
		{
			name: "no path", stderr: "failed: Operation not permitted (os error 1)", out: tried{Outcome: Outcome{Kind: Failed, Error: Crashed}},
			said: "failed: Operation not permitted (os error 1)", hints: []string{strings.Replace(allow, "PATH", "…", 1), off},
		},
		{
			name: "shared memory", stderr: "FATAL: could not create shared memory segment: Operation not permitted", out: tried{Outcome: Outcome{Kind: Failed, Error: Crashed}},
			said:  "FATAL: could not create shared memory segment: Operation not permitted",
			hints: []string{"claude runs confined and shares no memory with other programs. If it needs that: uwf config set agents.mine.sandbox.sharedMemory true"},
		},
		{
			name: "it ends without a word", out: tried{Outcome: Outcome{Kind: Failed, Error: Crashed}},
			hints: []string{"claude runs confined. If it works without that, uwf config set agents.mine.sandbox.mode none"},
		},
		{name: "it ends after its work began", out: tried{Outcome: Outcome{Kind: Failed, Error: Crashed}, worked: true}},
		{
			name: "what it does without, and then more", stderr: "WARNING: could not do this: Permission denied\nopen /srv/x: Permission denied\n",
			out: tried{Outcome: Outcome{Kind: Failed, Error: Crashed}}, said: "open /srv/x: Permission denied",
			hints: []string{strings.Replace(allow, "PATH", "/srv/x", 1), off},
		},
		{
			name: "what it does without, in the error as well", stderr: "WARNING: could not do this: Permission denied",
			out: tried{Outcome: Outcome{Kind: Failed, Error: errorkind.Denied, Message: "WARNING: could not do this: Permission denied"}},
		},
		{
			name: "another reason than what it was refused", stderr: "open /srv/x: Permission denied",
			out: tried{Outcome: Outcome{Kind: Failed, Error: errorkind.RateLimit, Message: "429"}}, said: "open /srv/x: Permission denied",
		},
		{name: "its model fails", out: tried{Outcome: Outcome{Kind: Failed, Error: errorkind.Server, Message: "500"}}},
	} {
		r := &runner{adapter: Adapter{Program: "claude"}, req: &agentkit.Request{Alias: "mine"}, env: env.Env{Environ: []string{"UWF_AGENT=mine"}}, confinement: &confinement{}}
		r.refused.harmless = []string{"could not do this"}
		for part := range slices.Chunk([]byte(c.stderr), 7) { // it comes in pieces
			_, err := r.refused.Write(part)
			require.NoError(t, err)
		}
		var said []string
		if c.said != "" {
			said = []string{"it said: " + c.said}
		}
		require.Equal(t, said, r.refusal(c.out), c.name)
		require.Equal(t, c.hints, r.heldHints(c.out), c.name)
		r.confinement = nil
		require.Empty(t, append(r.refusal(c.out), r.heldHints(c.out)...), "it was not confined")
	}
}

func TestAFloodOfShortLinesIsReadCheaply(t *testing.T) {
	var f refusals
	line := []byte("a \x1b[31mred\x1b[0m line\n")
	require.Less(t, testing.AllocsPerRun(100, func() { _, _ = f.Write(line) }), 12.0)
}
