package offlimits_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Git finds a repository in a directory with any name, so file tools must not create one piece by piece.
func TestFilesMakeNoRepository(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{
		{"config", "HEAD", "objects/x", "refs/x"}, {"refs/heads/x", "objects/x", "HEAD"}, {"HEAD", "commondir"},
		{"commondir", "HEAD"}, {"objects/x", "HEAD", "refs./x"},
	} {
		for _, at := range []string{".", "docs", "a/b/c"} {
			dir := put(t, nil)
			var err error
			for _, name := range order {
				require.NoError(t, err)
				full := filepath.Join(dir, at, name)
				if err = (offlimits.List{}).Write(dir, full); err == nil {
					require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
					require.NoError(t, os.WriteFile(full, nil, 0o644))
				}
			}
			prosetest.Error(t, err, "%s in %s", order, at)
		}
	}
	dir := put(t, map[string]string{"b/HEAD": "", "b/objects/x": "", "b/refs/x": "", "b/tree/config/x": "", "docs/HEAD": "", "docs/refs/x": ""})
	for _, name := range []string{"b/config", "b/hooks/post-receive", "b/HEAD", "b/config.worktree", "b/info/attributes", "b/sequencer/todo", "b/gitdir", "b/description"} {
		prosetest.Error(t, offlimits.List{}.Write(dir, filepath.Join(dir, name)), name)
	}
	for _, name := range []string{"docs/config", "docs/hooks/x", "docs/HEAD", "config", "objects/x", "."} {
		require.NoError(t, offlimits.List{}.Write(dir, filepath.Join(dir, name)), name)
	}
	allowed := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{"b"}})
	require.NoError(t, allowed.Write(dir, filepath.Join(dir, "b/config")))
}

func TestWhatGitsSettingsNameIsNotWritten(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{
		"w/.git/config": "[core] hooksPath = \".githooks\" # ours\n[include]\n\tpath = ../.shared\n[includeIf \"gitdir:~/\"]\n\tPath = ~/w/\\\n.cond\n",
		"w/.shared":     "[include]\npath = conf/deep\n", "w/sub/.git": "gitdir: ../.git/modules/sub\n", "w/.git/modules/sub/config": "[core]\nhooksPath = .husky/_\n",
		"w/dotfiles/gitconfig": "[core]\n hooksPath = tools/hooks\n", "w/.git/config.worktree": "[include]\npath = ../link/x\n", "w/real/f": "", "w/src/f": "",
	})
	w := filepath.Join(dir, "w")
	require.NoError(t, os.Symlink("real", filepath.Join(w, "link")))
	require.NoError(t, os.Symlink(filepath.Join(w, "dotfiles/gitconfig"), filepath.Join(dir, ".gitconfig")))
	l := offlimits.New(offlimits.Options{UserHome: dir, Dir: w})
	for _, name := range []string{".githooks/pre-commit", ".Githooks/x", ".shared", ".cond", "conf/deep", "dotfiles/gitconfig", "tools/hooks/post-commit", "real/x"} {
		prosetest.Error(t, l.Write(w, filepath.Join(w, name)), name)
	}
	prosetest.Error(t, l.Write(w, filepath.Join(w, "sub/tools/hooks/x")))
	prosetest.Error(t, l.Write(filepath.Join(w, "src"), filepath.Join(w, "src/.git/x")))
	for _, name := range []string{".husky", "real/f", "tools/x", "src/f", "conf/other"} {
		require.NoError(t, l.Write(w, filepath.Join(w, name)), name)
	}
	prosetest.Error(t, l.Write(w, filepath.Join(w, "sub/.husky/pre-commit")))
	l = offlimits.New(offlimits.Options{UserHome: dir, Dir: w, AllowWrite: []string{"dotfiles/gitconfig"}})
	require.NoError(t, l.Write(w, filepath.Join(w, "dotfiles/gitconfig")))

	require.NoError(t, os.WriteFile(filepath.Join(w, ".git/config"), []byte("[core]\nhooksPath=.\n"), 0o644))
	prosetest.Error(t, l.Write(w, filepath.Join(w, "pre-commit")))
	require.NoError(t, l.Write(w, filepath.Join(w, "main.go")))
}

func TestASubmodulesRepositoryMustNameItsTree(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"lib/f": "", "super/f": "", "fake/f": "", "sep/f": ""})
	shell(t, dir, `git init -q lib; git -C lib commit -q --allow-empty -m x; git init -q super; git -C super -c protocol.file.allow=always submodule --quiet add "$PWD/lib" sub
		echo "gitdir: ../super/.git/modules/sub" > fake/.git; git init -q --separate-git-dir="$PWD/store" sep`)
	git, ok := offlimits.Module(filepath.Join(dir, "super/sub"))
	require.True(t, ok)
	require.Equal(t, filepath.Join(dir, "super/.git/modules/sub"), git)
	for _, name := range []string{"fake", "super", "sep", "lib"} {
		_, ok := offlimits.Module(filepath.Join(dir, name))
		require.False(t, ok, name)
	}
	shell(t, dir, `git -C sep config core.worktree "$PWD/sep"`)
	_, ok = offlimits.Module(filepath.Join(dir, "sep"))
	require.True(t, ok)
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}
