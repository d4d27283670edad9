package box_test

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
)

// A mount over a file ends when a program outside replaces the file. What the command changes then is undone, and
// uwf's own merges don't replace a config.
func TestReplaced(t *testing.T) {
	t.Parallel()
	const evil = "printf '[core]\\n\\tfsmonitor = evil\\n' >>.git/config; echo evil >.mcp.json; true"
	for name, c := range map[string]struct{ outside, settings, mcp, then string }{
		"by a merge":     {outside: "merge", settings: "", mcp: "{}\n"},
		"by their owner": {outside: "git config user.name me; printf new >x; mv x .mcp.json", settings: "user.name me\n"},
		"and removed":    {outside: "git config branch.b.merge refs/heads/c", settings: "user.name old\n", mcp: "{}\n", then: "rm .git/config"},
		"and linked":     {outside: "git config branch.b.merge refs/heads/c", settings: "user.name old\n", mcp: "{}\n", then: "ln -sf /tmp/x .git/config"},
		"twice": {
			outside:  "for i in 1 2; do git config branch.b.merge refs/heads/$i; cp .mcp.json x; mv x .mcp.json; done",
			settings: "branch.b.merge refs/heads/2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.write("src/work/.mcp.json", "{}\n")
			if c.then != "" {
				s.git("config", "user.name", "old")
			}
			exe, err := os.Executable()
			require.NoError(t, err)
			in, tell, err := os.Pipe()
			require.NoError(t, err)
			read, out, err := os.Pipe()
			require.NoError(t, err)
			cmd, run, err := s.request.Prepare(exe, proc.Command{
				Path: "/bin/sh", Args: []string{"-c", "echo; read go; " + cmp.Or(c.then, evil)}, Dir: s.work, Env: s.env(), Stdin: in, Stdout: out,
			})
			require.NoError(t, err)
			child, err := proc.Start(cmd)
			require.NoError(t, out.Close())
			if err != nil {
				t.Skipf("no namespaces here: %v", box.Probe(exe))
			}
			began := bufio.NewReader(read)
			_, err = began.ReadString('\n')
			require.NoError(t, err)
			if c.outside == "merge" {
				_, _, said := s.run("git config branch.b.merge refs/heads/c")
				require.Empty(t, said)
				c.settings = "branch.b.merge refs/heads/c\n"
			} else {
				s.typed(c.outside)
			}
			require.NoError(t, tell.Close())
			_, err = io.Copy(io.Discard, began)
			require.NoError(t, err)
			_, err = child.Wait(context.Background(), time.Second)
			require.NoError(t, err)
			_, err = run.End(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.settings, s.git("config", "--local", "--get-regexp", "^(core.fsmonitor|user|branch)"))
			text, err := os.ReadFile(filepath.Join(s.work, ".mcp.json"))
			if c.mcp == "" {
				require.ErrorIs(t, err, os.ErrNotExist, "it was renamed")
			}
			require.Equal(t, c.mcp, string(text))
		})
	}
}
