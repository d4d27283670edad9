package box_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
)

// planted returns scripts that change protected files, which must be restored afterwards.
func planted() map[string]string {
	return map[string]string{
		"a hook":                "printf evil > .git/hooks/pre-commit",
		"a hook that was there": "printf evil >> .git/hooks/mine; chmod 777 .git/hooks/mine",
		"hooks removed":         "rm -r .git/hooks",
		"hooks as a link":       "mv .git/hooks h; ln -s ../h .git/hooks; printf evil > h/pre-commit",
		"info":                  "printf evil > .git/info/attributes; printf evil >> .git/info/exclude",
		"alternates":            "printf /x > .git/objects/info/alternates",
		"commondir":             "printf /x > .git/commondir",
		"config.worktree":       "git config -f .git/config.worktree core.fsmonitor id",
		"a setting":             "git config core.fsmonitor id",
		"an unreadable config":  "printf '[x' > .git/config",
		"config as a pipe":      "rm .git/config; mkfifo .git/config",
		"config as a directory": "rm .git/config; mkdir .git/config",
		"a second name":         "ln .git/config c3; printf '[core]\\nfsmonitor = id\\n' >> c3; rm c3",
		"a closed config":       "printf evil > .git/hooks/pre-commit; chmod 0 .git/hooks .git/config",
		"a module":              "git config -f .git/modules/sub/config core.fsmonitor id; printf evil > .git/modules/sub/hooks/post-commit",
		"a work tree":           "printf /x > .git/worktrees/w/commondir; printf /x > .git/worktrees/w/gitdir",
		"a nested repository":   "git -C inner config core.fsmonitor id; printf evil > inner/.git/hooks/post-commit",
		"a .git file":           "printf 'gitdir: /x' > file/.git",
		"a .git file replaced":  "rm file/.git; git init -q file; rm -r file/.git",
		"settings of an agent":  "printf evil > .claude/settings.json; printf evil > .claude/new",
		"settings removed":      "rm -r .claude",
		"new settings":          "printf '{\"x\":1}' > .mcp.json; mkdir -p deep/.workflow; printf evil > deep/.workflow/x.yaml",
		"hooks of husky":        "printf evil > .husky/pre-commit; mkdir .husky/new",
		"a new repository":      "git init -q new; git -C new config core.fsmonitor id",
	}
}

// lowerSpace is a repository with everything that a command could change, unconfined.
func lowerSpace(t *testing.T) *space {
	t.Helper()
	s := newSpace(t)
	s.typed(`git config core.hooksPath .husky; mkdir .husky; printf mine > .husky/commit-msg; printf mine > .git/hooks/mine; chmod 755 .git/hooks/mine
		git init -q inner; git init -q store; mkdir -p .git/modules file .claude .git/worktrees/w; mv store/.git .git/modules/sub; rmdir store
		printf 'gitdir: ../.git/modules/sub' > file/.git; printf '{"mine":1}' > .claude/settings.json
		printf ../.. > .git/worktrees/w/commondir; printf /w/.git > .git/worktrees/w/gitdir; printf 'ref: refs/heads/w' > .git/worktrees/w/HEAD`)
	return s
}

func (s *space) typed(script string) {
	s.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = s.work, s.env()
	out, err := cmd.CombinedOutput()
	require.NoError(s, err, "%s", out)
}

// obeyed returns the state of all files that git and agents obey, anywhere.
func (s *space) obeyed() map[string]string {
	s.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(s.work, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.work, path)
		info, gone := os.Lstat(path)
		if err != nil || gone != nil {
			return errors.Join(err, gone)
		}
		for _, passed := range []string{".sample", "/description", "/HEAD", "/refs", "/objects/pack", "/branches"} {
			if strings.HasSuffix(rel, passed) {
				return nil
			}
		}
		ours := rel == "new/.git/config"
		if strings.Contains(rel, ".uwf-new") || strings.Contains(rel, "uwf-new-") || rel == "deep" || rel == "h" || strings.HasPrefix(rel, "new") && !ours || strings.HasPrefix(rel, "h/") || rel == "file" {
			return nil
		}
		found[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			found[rel] += string(text)
			return err
		}
		return nil
	})
	require.NoError(s, err)
	return found
}

func differing(t *testing.T, before, after map[string]string, said string) {
	t.Helper()
	for name := range after {
		require.Equal(t, before[name], after[name], "%s: %s", name, said)

	}
	for name := range before {
		require.Contains(t, after, name, said)
	}
}

func (s *space) begin() *box.Run {
	s.Helper()
	run, err := s.request.Lower()
	require.NoError(s, err)
	return run
}

func (s *space) end(run *box.Run) string {
	s.Helper()
	said, err := run.End(s.Context())
	require.NoError(s, err)
	return strings.Join(said, "\n")
}

func TestLowerPutsBack(t *testing.T) {
	t.Parallel()
	for name, script := range planted() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := lowerSpace(t)
			before := s.obeyed()
			run := s.begin()
			s.typed(script)
			said := s.end(run)
			differing(t, before, s.obeyed(), said)
			require.NotEmpty(t, said)
			run = s.begin()
			require.Empty(t, s.end(run))
			differing(t, before, s.obeyed(), "")
		})
	}
}

// The error for a run whose state is unreadable names the directory to delete.
func TestUnreadableRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"check", "state.json"} {
		s := lowerSpace(t)
		box.Abandon(s.begin())
		files, err := filepath.Glob(filepath.Join(s.state, "run-*", name))
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.NoError(t, os.WriteFile(files[0], nil, 0o600))
		_, err = box.Recover(t.Context(), s.state)
		require.ErrorContains(t, err, filepath.Dir(files[0]))
		require.NoError(t, os.RemoveAll(filepath.Dir(files[0])))
		require.NoError(t, s.begin().Cancel())
	}
}

// Files that one command planted while another one was starting are not taken for the user's, whichever ends
// first.
func TestLowerOverlaps(t *testing.T) {
	t.Parallel()
	for name, script := range planted() {
		for _, last := range []string{"the second ends last", "the first ends last", "the second plants it again", "the first is killed"} {
			t.Run(name+", "+last, func(t *testing.T) {
				t.Parallel()
				s := lowerSpace(t)
				before := s.obeyed()
				first := s.begin()
				s.typed(script)
				second := s.begin()
				said := ""
				switch last {
				case "the second ends last":
					said = s.end(first) + s.end(second)
				case "the first ends last":
					said = s.end(second) + s.end(first)
				case "the second plants it again":
					said = s.end(first)
					s.typed("rm -rf new; " + script)
					said += s.end(second)
				default:
					box.Abandon(first)
					said = s.end(second)
					told, err := box.Recover(t.Context(), s.state)
					require.NoError(t, err)
					said += strings.Join(told, "\n")
				}
				differing(t, before, s.obeyed(), said)
				require.NotEmpty(t, said)
			})
		}
	}
}

// Recovering the runs of killed programs does not touch a run that is just starting.
func TestBeginBesideRecover(t *testing.T) {
	t.Parallel()
	s := lowerSpace(t)
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, err := box.Recover(t.Context(), s.state)
					assert.NoError(t, err)
				}
			}
		})
	}
	for range 30 {
		s.end(s.begin())
	}
	close(done)
	group.Wait()
}

// Permitted changes to a config are merged, even from two commands at once.
func TestLowerMerges(t *testing.T) {
	t.Parallel()
	s := lowerSpace(t)
	first := s.begin()
	s.typed("git remote add a https://a.example/x; git config alias.x '!id'")
	second := s.begin()
	require.Contains(t, s.end(first), "a.example")
	s.typed("git remote add b https://b.example/x; git config alias.y '!id'")
	require.Contains(t, s.end(second), "b.example")
	require.Equal(t, "a\nb\n", s.git("remote"))
	require.NotContains(t, s.git("config", "--get-regexp", "^(alias|core.bare)"), "alias")
}

// In namespaces as well, files that one command made while another one was starting are new for both.
func TestOverlap(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		".mcp.json": "printf '{\"x\":1}' > .mcp.json", ".git/commondir": "printf /x > .git/commondir",
		"new/.git/config": "rm -rf new; git init -q new; git -C new config core.fsmonitor id", ".git/config.worktree": "git config -f .git/config.worktree core.fsmonitor id",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			begin := func() *box.Run {
				cmd, run, err := s.request.Prepare("/none", proc.Command{Path: "/bin/true", Env: s.env()})
				require.NoError(t, err)
				_, err = cmd.Box.Plan()
				require.NoError(t, err)
				return run
			}
			first := begin()
			s.typed(script)
			second := begin()
			require.NotEmpty(t, s.end(first))
			s.typed(script)
			require.NotEmpty(t, s.end(second))
			require.NoFileExists(t, filepath.Join(s.work, name))
		})
	}
}
