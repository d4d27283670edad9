package offlimits_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// shell runs a script in a directory, with the git of this machine and none of its settings.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// state is all that a directory holds, but for git's objects.
func state(t *testing.T, dir string) string {
	t.Helper()
	return shell(t, dir, `find . -path ./.git/objects -prune -o -print | LC_ALL=C sort | while read f; do
		if [ -L "$f" ]; then echo "$f -> $(readlink "$f")"; elif [ -f "$f" ]; then echo "$f $(stat -c %a "$f" 2>/dev/null) $(cksum < "$f")"; else echo "$f"; fi; done`)
}

func TestWhatStartsProgramsIsPutBack(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, script, changed string }{
		{"config", `git config core.fsmonitor "touch x"`, ".git/config"},
		{"an alias", `printf '[alias]\n x = !id\n' >> .git/config`, ".git/config"},
		{"an include", `printf '[include]\n path = ../evil\n' >> .git/config`, ".git/config"},
		{"a section and a value in a line", `printf '[core] fsmonitor = id\n' >> .git/config`, ".git/config"},
		{"a program as a remote", `git remote add x 'ext::sh -c id'`, ".git/config"},
		{"config replaced by a link", `cp .git/config evil; rm .git/config; ln -s ../evil .git/config; rm evil`, ".git/config"},
		{"config replaced by a pipe", `rm .git/config; mkfifo .git/config`, ".git/config"},
		{"config replaced by a directory", `rm .git/config; mkdir .git/config; touch .git/config/x`, ".git/config"},
		{"config removed", `rm .git/config`, ".git/config"},
		{"a large config", `head -c 3000000 /dev/zero > .git/config`, ".git/config"},
		{"a hook", `echo id > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, ".git/hooks/pre-commit"},
		{"a hook that was there", `echo id >> .git/hooks/mine`, ".git/hooks/mine"},
		{"a hook that may run", `chmod 755 .git/hooks/mine`, ".git/hooks/mine"},
		{"hooks replaced by a link", `mv .git/hooks evil; ln -s ../evil .git/hooks; rm -r evil`, ".git/hooks"},
		{"hooks removed", `rm -r .git/hooks`, ".git/hooks"},
		{"attributes", `echo '* filter=x' > .git/info/attributes`, ".git/info/attributes"},
		{"another common directory", `echo ../evil > .git/commondir`, ".git/commondir"},
		{"config.worktree", `printf '[core]\n fsmonitor = id\n' > .git/config.worktree`, ".git/config.worktree"},
		{"a submodule's config", `printf '[core]\n fsmonitor = id\n' >> .git/modules/dir/sub/config`, ".git/modules/dir/sub/config"},
		{"a submodule's hook", `mkdir .git/modules/dir/sub/hooks; echo id > .git/modules/dir/sub/hooks/post-checkout`, ".git/modules/dir/sub/hooks/post-checkout"},
		{"a submodule of another name", `touch .git/modules/dir/HEAD; printf '[core]\n fsmonitor = id\n' >> .git/modules/dir/sub/config; rm .git/modules/dir/HEAD`, ".git/modules/dir/sub/config"},
		{"an inner repository", `git -C inner config core.pager id`, "inner/.git/config"},
		{"a workflow", `echo evil > .workflow/x.yaml`, ".workflow/x.yaml"},
		{"a new workflow", `echo evil > .workflow/y.yaml`, ".workflow/y.yaml"},
		{"more workflows", `mkdir .workflows; echo evil > .workflows/y.yaml`, ".workflows"},
		{"a workflow in a lenient place", `mkdir .workflow/info; echo evil > .workflow/info/y.yaml`, ".workflow/info"},
		{"workflows as a link", `mkdir evil; mv .workflow/x.yaml evil; rmdir .workflow; ln -s evil .workflow; rm -r evil`, ".workflow"},
		{"a home", `mkdir .uwf; echo evil > .uwf/config.yaml; rm -r .uwf; mkdir .uwf; echo evil > .uwf/config.yaml; `, ".uwf/config.yaml"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := put(t, map[string]string{".workflow/x.yaml": "mine"})
			shell(t, dir, `git init -q; git commit -q --allow-empty -m first; echo mine > .git/hooks/mine; git init -q inner
				mkdir -p .git/modules/dir; cp -r inner/.git .git/modules/dir/sub; rm -r .git/modules/dir/sub/hooks; mkdir -p .git/info`)
			before := state(t, dir)
			w, err := offlimits.Watch(offlimits.List{}, dir, offlimits.Repositories(dir), nil)
			require.NoError(t, err)
			changed, err := w.Restore()
			require.NoError(t, err)
			require.Empty(t, changed)
			shell(t, dir, c.script)
			changed, err = w.Restore()
			require.NoError(t, err)
			require.Contains(t, changed, c.changed)
			after := state(t, dir)
			if c.name == "a home" {
				after = strings.Replace(after, "./.uwf\n", "", 1)
			}
			if strings.HasPrefix(c.name, "a submodule's hook") {
				after = strings.Replace(after, "./.git/modules/dir/sub/hooks\n", "", 1)
			}
			require.Equal(t, before, after)
		})
	}
}

func TestWhatGitNeedsMayChange(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"f": "text"})
	watch := func(script string) []string {
		t.Helper()
		w, err := offlimits.Watch(offlimits.List{}, dir, offlimits.Repositories(dir), nil)
		require.NoError(t, err)
		shell(t, dir, script)
		changed, err := w.Restore()
		require.NoError(t, err)
		return changed
	}
	require.Empty(t, watch(`git init -q`))
	require.Empty(t, watch(`git config user.name x; git config user.email x@example.org; git add f; git commit -q -m one; git tag x; git gc -q`))
	require.Empty(t, watch(`git remote add origin /nowhere; git checkout -q -b topic; git branch -q --track other topic; git stash list`))
	require.Empty(t, watch(`git worktree add -q tree; git worktree remove tree; git worktree add -q tree`))
	require.Empty(t, watch(`git init -q made; cd made; git commit -q --allow-empty -m x`))
	require.Contains(t, watch(`rm -r .git`), ".git", "it cannot be put back, but it is told")
	require.Contains(t, watch(`git init -q; git config core.fsmonitor id`), ".git/config")
	require.Contains(t, watch(`rm -r .git; mkdir evil; git init -q evil/x; echo "gitdir: evil/x/.git" > .git`), ".git")
	require.NoFileExists(t, filepath.Join(dir, ".git"))
	require.Contains(t, watch(`ln -s evil/x/.git .git`), ".git")
	require.NoFileExists(t, filepath.Join(dir, ".git"))
}

func TestLinkedRepositoryIsWatched(t *testing.T) {
	t.Parallel()
	base := put(t, map[string]string{"repo/f": ""})
	shell(t, base, `cd repo; git init -q; git commit -q --allow-empty -m first; git worktree add -q ../tree`)
	before := state(t, base)
	w, err := offlimits.Watch(offlimits.List{}, filepath.Join(base, "tree"), nil, []string{filepath.Join(base, "repo/.git")})
	require.NoError(t, err)
	shell(t, base, `echo id > repo/.git/hooks/post-commit; echo x > repo/.git/worktrees/tree/commondir; printf '[core]\n pager = id\n' > repo/.git/worktrees/tree/config.worktree
		echo "gitdir: ../evil" > tree/.git; mkdir repo/.workflow`)
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Len(t, changed, 4)
	require.NoError(t, os.Remove(filepath.Join(base, "repo/.workflow")), "that is no workspace: others may work there")
	require.Equal(t, before, state(t, base))
}

func TestAllowedByName(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{".workflow/x.yaml": "mine", ".git/HEAD": "", ".git/hooks/x": ""})
	l := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{".workflow", ".git/hooks"}})
	w, err := offlimits.Watch(l, dir, nil, nil)
	require.NoError(t, err)
	shell(t, dir, `echo y > .workflow/y.yaml; rm .workflow/x.yaml; echo id > .git/hooks/pre-commit; rm .git/hooks/x; echo id > .git/commondir`)
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Equal(t, []string{".git/commondir"}, changed)
}
