package box_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
)

// A mount over a file or directory ends when a program outside replaces it. What the command changes then is undone,
// and uwf's own merges don't replace a config.
func TestReplaced(t *testing.T) {
	t.Parallel()
	const evil = "printf '[core]\\n\\tfsmonitor = evil\\n' >>.git/config; echo evil >.mcp.json; true"
	const mine, kept, old = "git config user.name me; printf new >x; mv x .mcp.json", "user.name me\n", "user.name old\n"
	for name, c := range map[string]struct {
		outside, inside, settings, mcp string
		beside                         bool // another command begins before the first one ends
	}{
		"a link beside another command": {
			outside: mine, inside: "mv .git/config x; ln -s ../x .git/config", settings: kept, beside: true,
		},
		"a link":         {outside: mine, inside: "mv .git/config x; ln -s ../x .git/config", settings: old},
		"a broken link":  {outside: mine, inside: "ln -sf /tmp/x .git/config", settings: old},
		"a directory":    {outside: mine, inside: "rm .git/config; mkdir .git/config", settings: old},
		"nothing":        {outside: mine, inside: "rm .git/config", settings: old},
		"a large file":   {outside: mine, inside: "seq 300000 | sed s/^/#/ >>.git/config", settings: old},
		"a closed file":  {outside: mine, inside: "chmod 444 .git/config", settings: kept},
		"a closed place": {outside: mine, inside: "chmod 500 .git", settings: kept},
		"a lock":         {outside: mine, inside: "touch .git/config.lock", settings: kept},
		"another name":   {outside: mine, inside: "ln .git/config .git/other", settings: kept},
		"hooks":          {outside: "mv .git/hooks x; mkdir .git/hooks", inside: "echo evil >.git/hooks/pre-commit", mcp: "{}\n"},
		"objects": {
			outside: "mv .git/objects/info x; mkdir .git/objects/info", inside: "echo /evil >.git/objects/info/alternates", mcp: "{}\n",
		},
		"by a merge":     {outside: "merge", settings: "", mcp: "{}\n"},
		"by their owner": {outside: mine, settings: kept},
		"twice": {
			outside:  "for i in 1 2; do git config branch.b.merge refs/heads/$i; cp .mcp.json x; mv x .mcp.json; done",
			settings: "branch.b.merge refs/heads/2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.write("src/work/.mcp.json", "{}\n")
			if c.settings == old {
				s.git("config", "user.name", "old")
			}
			exe, err := os.Executable()
			require.NoError(t, err)
			in, tell, err := os.Pipe()
			require.NoError(t, err)
			read, out, err := os.Pipe()
			require.NoError(t, err)
			cmd, run, err := s.request.Prepare(exe, proc.Command{
				Path: "/bin/sh", Args: []string{"-c", "echo; read go; " + evil + "; " + c.inside}, Dir: s.work, Env: s.env(), Stdin: in, Stdout: out,
			})
			require.NoError(t, err)
			child, err := proc.Start(cmd)
			require.NoError(t, out.Close())
			if err != nil {
				none := box.Probe(exe)
				require.Error(t, none, "namespaces work, but: %v", err)
				t.Skipf("no namespaces here: %v", none)
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
			ends := []*box.Run{run}
			if c.beside {
				cmd, second, err := s.request.Prepare(exe, proc.Command{Path: "/bin/true", Dir: s.work, Env: s.env()})
				require.NoError(t, err)
				child, err := proc.Start(cmd)
				require.NoError(t, err)
				_, err = child.Wait(context.Background(), time.Second)
				require.NoError(t, err)
				ends = append(ends, second)
			}
			for _, run := range ends {
				_, err = run.End(t.Context())
				require.NoError(t, err)
			}
			_, _, _ = s.run("exec 2>/dev/null; " + strings.ReplaceAll(evil, "config", "other"))
			require.Equal(t, c.settings, s.shell("git config --local --get-regexp '^(core.fsmonitor|user|branch)' || true"))
			for _, name := range []string{"hooks/pre-commit", "objects/info/alternates"} {
				require.NoFileExists(t, filepath.Join(s.work, ".git", name))
			}
			text, err := os.ReadFile(filepath.Join(s.work, ".mcp.json"))
			if c.mcp == "" {
				require.ErrorIs(t, err, os.ErrNotExist, "it was renamed")
			}
			require.Equal(t, c.mcp, string(text))
		})
	}
}
