package offlimits_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
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

// planted is a script that changes what starts programs, and the name that is told.
type planted struct{ name, script, changed string }

func plantings() []planted {
	return []planted{
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
		{"an agent's servers", `echo '{"mcpServers":{}}' > .mcp.json`, ".mcp.json"},
		{"an agent's plugin", `mkdir .opencode; echo id > .opencode/x.js; rm -r .opencode; echo '{"plugin":["x"]}' > opencode.json`, "opencode.json"},
		{"an agent's hooks that were there", `echo id >> .cursor/hooks.json`, ".cursor/hooks.json"},
		{"a home", `mkdir .uwf; echo evil > .uwf/config.yaml; rm -r .uwf; mkdir .uwf; echo evil > .uwf/config.yaml; `, ".uwf"},
		{"a home below", `mkdir -p inner/.uwf/cas; echo evil > inner/.uwf/config.yaml`, "inner/.uwf"},
	}
}

// guardedRepository has something of each kind that is guarded.
func guardedRepository(t *testing.T) string {
	t.Helper()
	dir := put(t, map[string]string{".workflow/x.yaml": "mine", ".cursor/hooks.json": "{}"})
	shell(t, dir, `git init -q; git commit -q --allow-empty -m first; echo mine > .git/hooks/mine; git init -q inner
		mkdir -p .git/modules/dir; cp -r inner/.git .git/modules/dir/sub; rm -r .git/modules/dir/sub/hooks; mkdir -p .git/info`)
	return dir
}

// tidied is a state without the empty directory that a plant may leave.
func tidied(c planted, state string) string {
	if c.name == "a submodule's hook" {
		return strings.Replace(state, "./.git/modules/dir/sub/hooks\n", "", 1)
	}
	return state
}

func TestWhatStartsProgramsIsPutBack(t *testing.T) {
	t.Parallel()
	for _, c := range plantings() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := guardedRepository(t)
			before := state(t, dir)
			w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir})
			require.NoError(t, err)
			changed, err := w.Restore()
			require.NoError(t, err)
			require.Empty(t, changed)
			shell(t, dir, c.script)
			changed, err = w.Restore()
			require.NoError(t, err)
			require.Contains(t, changed.Undone, c.changed)
			require.Equal(t, before, tidied(c, state(t, dir)))
		})
	}
}

// What a program makes for itself beside its settings stays.
func TestSettingsOfAgentsThatACommandMakes(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"f": ""})
	changed := watching(t, dir, `mkdir -p .claude/worktrees/a sub/.gemini; echo x > .claude/worktrees/a/f; echo '{"hooks":{}}' > .claude/settings.local.json; echo '{"tools":{}}' > sub/.gemini/settings.json`)
	require.Equal(t, []string{".claude/settings.local.json", "sub/.gemini/settings.json"}, changed.Undone)
	require.FileExists(t, filepath.Join(dir, ".claude/worktrees/a/f"))

	names := []string{".github/hooks/x.json", ".hg/hgrc", ".jj/repo/config.toml", ".vscode/mcp.json", "crush.json", "sub/.amp/settings.json"}
	changed = watching(t, dir, `for f in `+strings.Join(names, " ")+` .hg/store/x .vscode/settings.json .crush/crush.db; do mkdir -p "$(dirname "$f")"; echo '{"x":1}' > "$f"; done`)
	require.Equal(t, names, changed.Undone)
	for _, name := range []string{".hg/store/x", ".vscode/settings.json", ".crush/crush.db"} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".vscode/mcp.json"), []byte("{}"), 0o600))
	require.Equal(t, []string{".vscode/mcp.json"}, watching(t, dir, `echo '{"servers":{}}' > .vscode/mcp.json`).Undone)
	allowed := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{".vscode/mcp.json"}})
	w, err := offlimits.Watch(allowed, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	shell(t, dir, `echo '{"servers":{}}' > .vscode/mcp.json`)
	changed, err = w.Restore()
	require.NoError(t, err)
	require.Empty(t, changed.Undone)
}

func TestWhatGitNeedsMayChange(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{"f": "text"})
	watch := func(script string) []string {
		t.Helper()
		w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir})
		require.NoError(t, err)
		shell(t, dir, script)
		changed, err := w.Restore()
		require.NoError(t, err)
		return append(changed.Undone, changed.Lost...)
	}
	require.Empty(t, watch(`git init -q`))
	require.Empty(t, watch(`git config user.name x; git config user.email x@example.org; git add f; git commit -q -m one; git tag x; git gc -q`))
	require.Empty(t, watch(`git remote add origin /nowhere; git checkout -q -b topic; git branch -q --track other topic; git stash list`))
	require.Empty(t, watch(`git worktree add -q tree; git worktree remove tree; git worktree add -q tree`))
	require.Empty(t, watch(`git init -q made; cd made; git commit -q --allow-empty -m x`))
	require.Contains(t, watch(`rm -r .git`), ".git", "it cannot be put back, but it is told")
	require.Contains(t, watch(`git init -q; git config core.fsmonitor id`), ".git/config")
	require.Contains(t, watch(`rm -r .git; mkdir evil; git init -q evil/x; git init -q --bare evil/x/.git/y; echo "gitdir: evil/x/.git/y" > .git`), ".git")
	require.NoFileExists(t, filepath.Join(dir, ".git"))
	require.Contains(t, watch(`ln -s evil/x/.git .git`), ".git")
	require.NoFileExists(t, filepath.Join(dir, ".git"))
}

func TestLinkedRepositoryIsWatched(t *testing.T) {
	t.Parallel()
	base := put(t, map[string]string{"repo/f": ""})
	shell(t, base, `cd repo; git init -q; git commit -q --allow-empty -m first; git worktree add -q ../tree`)
	before := state(t, base)
	w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: filepath.Join(base, "tree"), Beside: []string{filepath.Join(base, "repo/.git")}})
	require.NoError(t, err)
	shell(t, base, `echo id > repo/.git/hooks/post-commit; echo x > repo/.git/worktrees/tree/commondir; printf '[core]\n pager = id\n' > repo/.git/worktrees/tree/config.worktree
		echo "gitdir: ../evil" > tree/.git; mkdir repo/.workflow`)
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Len(t, changed.Undone, 4)
	require.NoError(t, os.Remove(filepath.Join(base, "repo/.workflow")), "that is no workspace: others may work there")
	require.Equal(t, before, state(t, base))
}

func TestAllowedByName(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{".workflow/x.yaml": "mine", ".git/HEAD": "", ".git/hooks/x": ""})
	l := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{".workflow", ".git/hooks"}})
	w, err := offlimits.Watch(l, offlimits.Place{Workspace: dir})
	require.NoError(t, err)
	shell(t, dir, `echo y > .workflow/y.yaml; rm .workflow/x.yaml; echo id > .git/hooks/pre-commit; rm .git/hooks/x; echo id > .git/commondir`)
	changed, err := w.Restore()
	require.NoError(t, err)
	require.Equal(t, []string{".git/commondir"}, changed.Undone)
}

// A push runs the hooks of a repository on this machine. One that the user allows by
// name may be a remote, not all that is in a directory.
func TestRemotesInAllowedPlaces(t *testing.T) {
	t.Parallel()
	dir, elsewhere := put(t, map[string]string{"f": ""}), put(t, map[string]string{"o.git/f": "", "all/o.git/f": ""})
	shell(t, dir, "git init -q")
	l := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{elsewhere + "/o.git", elsewhere + "/all"}})
	for remote, stays := range map[string]bool{"o.git": true, "all/o.git": false} {
		w, err := offlimits.Watch(l, offlimits.Place{Workspace: dir, Writable: l.Writable()})
		require.NoError(t, err)
		shell(t, dir, "git remote remove x 2>/dev/null || true; git remote add x "+elsewhere+"/"+remote)
		changed, err := w.Restore()
		require.NoError(t, err)
		require.Equal(t, stays, changed.String() == "", "%s: %v", remote, changed)
	}
}

// watching runs a script between a Watch and a Restore.
func watching(t *testing.T, dir, script string) offlimits.Changes {
	t.Helper()
	w, err := offlimits.Watch(offlimits.List{}, offlimits.Place{Workspace: dir, Now: time.Now()})
	require.NoError(t, err)
	shell(t, dir, script)
	changed, err := w.Restore()
	require.NoError(t, err)
	return changed
}

func TestRepositoriesThatACommandMakesAreTamed(t *testing.T) {
	t.Parallel()
	evil := `git init -q; git commit -q --allow-empty -m x; git config core.fsmonitor "touch $EVIL"; `
	for _, c := range []struct{ name, before, script, then string }{
		{"a new one that is tracked", "", `mkdir new; cd new; ` + evil + `cd ..; git -c core.fsmonitor= add new`, "git status"},
		{"deep", "mkdir -p a/b/c/d/e/f; git init -q a/b/c/d/e/f", `cd a/b/c/d/e/f; ` + evil, "cd a/b/c/d/e/f; git status"},
		{"in node_modules", "mkdir -p node_modules/x; git init -q node_modules/x", `cd node_modules/x; ` + evil, "cd node_modules/x; git status"},
		{"a directory for settings elsewhere", "git init -q --separate-git-dir sep tree", `cd tree; ` + evil, "cd tree; git status"},
		{"bare, in a directory of files", "mkdir docs; echo x > docs/f", `cd docs; mkdir objects refs; echo ref: refs/heads/x > HEAD; printf '[core]\nfsmonitor = touch %s\nbare = false\nworktree = .\n' "$EVIL" > config`, "cd docs; git status || true"},
		{"bare, with a config on one line", "mkdir docs", `cd docs; mkdir objects refs; echo ref: refs/heads/x > HEAD; echo "[core] fsmonitor = touch $EVIL" > config; echo "[core] worktree=." >> config`, "cd docs; git status || true"},
		{"a hook of a place to push to", "", `git init -q --bare o.git; echo "touch $EVIL" > o.git/hooks/post-receive; chmod +x o.git/hooks/*; git remote add origin "$PWD/o.git"`, "git push o.git HEAD:refs/heads/x"},
		{"a hook where one pushes to", "git init -q --bare o.git; git remote add origin ./o.git", `echo "touch $EVIL" > o.git/hooks/post-receive; chmod +x o.git/hooks/*`, "git push origin HEAD:refs/heads/x"},
		{"what include.path names", "git config include.path ../.shared; touch .shared", `git config -f .shared core.fsmonitor "touch $EVIL"`, "git status"},
		{"what include.path names, anew", "git config include.path ../a/b/shared", `mkdir -p c/b; git config -f c/b/shared core.fsmonitor "touch $EVIL"; ln -s c a`, "git status"},
		{"what core.hooksPath names", "git config core.hooksPath .hooks", `mkdir .hooks; echo "touch $EVIL" > .hooks/post-commit; chmod +x .hooks/*`, "git commit -q --allow-empty -m x"},
		{"what husky names", "git config core.hooksPath .husky/_; mkdir -p .husky/_", `echo "touch $EVIL" > .husky/_/post-commit; chmod +x .husky/_/*`, "git commit -q --allow-empty -m x"},
		{"a rebase that goes on", "for i in a b; do git commit -q --allow-empty -m $i; done", `GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1; echo "exec touch $EVIL" >> .git/rebase-merge/git-rebase-todo`, "git rebase --continue"},
		{"behind a directory that cannot be read", "", `mkdir x; mkdir x/new; cd x/new; ` + evil + `cd ../..; git -c core.fsmonitor= add x/new; chmod 111 x`, "git status"},
		{"a link as .git", "", `mkdir e; cd e; ` + evil + `cd ..; mkdir new; ln -s ../e/.git new/.git`, "cd new; git status"},
		{"a workflow deep down", "mkdir -p svc/api", `mkdir svc/api/.workflow; echo x > "$EVIL"; mv "$EVIL" svc/api/.workflow/x.yaml`, "test ! -e svc/api/.workflow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := put(t, nil)
			set := "EVIL='" + filepath.Join(t.TempDir(), "evil") + "'; "
			shell(t, dir, "git init -q; git commit -q --allow-empty -m first; "+c.before)
			changed := watching(t, dir, set+c.script)
			require.NotEmpty(t, changed.Undone)
			shell(t, dir, set+`rm -f "$EVIL"; (`+c.then+`); test ! -e "$EVIL"`)
			require.Empty(t, watching(t, dir, "true"))
		})
	}
}

func TestEverydayGitIsNotDisturbed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(put(t, map[string]string{"w/f": "text", "w/g/x": "", "w/h/x": ""}), "w")
	shell(t, dir, `git init -q; git config alias.mine '!id'; echo mine > .git/hooks/mine; git add .; git commit -q -m first; git init -q ../lib; git -C ../lib commit -q --allow-empty -m x`)
	for _, script := range []string{
		`git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib" sub; git -C sub commit -q --allow-empty -m y`,
		`git sparse-checkout set g`,
		`git config merge.conflictStyle zdiff3; git config diff.algorithm histogram; git config rerere.enabled true; git config push.autoSetupRemote true; git config pull.rebase true; git config init.defaultBranch main`,
		`git init -q --separate-git-dir "$PWD/store" tree; git -C tree commit -q --allow-empty -m x`,
		`git worktree add -q linked; git -C linked commit -q --allow-empty -m y; git worktree remove linked`,
		`git clone -q --bare . copy.git; git init -q --bare other.git; git push -q other.git HEAD:refs/heads/x`,
		`git commit -q --allow-empty -m a; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1`,
		`git rebase --continue`,
		`git stash list; git gc -q; git tag t; git cherry-pick --allow-empty HEAD || git cherry-pick --abort`,
	} {
		if changed := watching(t, dir, script); strings.Contains(script, "clone") {
			require.Equal(t, []string{"copy.git/config"}, changed.Undone, "its origin is the workspace")
		} else {
			require.Empty(t, changed, script)
		}
	}
	require.Equal(t, offlimits.Changes{Lost: []string{".git"}}, watching(t, dir, `mv .git moved`), "nothing was undone")
	require.Empty(t, watching(t, dir, `mv moved .git`))
	require.Contains(t, shell(t, dir, `git config alias.mine; cat .git/hooks/mine`), "mine")
	prosetest.Text(t, watching(t, dir, `rm -rf .git`).String())
}

// Others add and remove linked work trees of the repository while a command runs, and git
// does neither at once: what is half there is not the command's.
func TestWorkTreesOfOthersComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell(t, dir, "git init -q; echo a > a; git add .; git commit -qm one; git worktree add -q --detach ../"+filepath.Base(dir)+"-old")
	t.Cleanup(func() { _ = os.RemoveAll(dir + "-old") })
	c := watching(t, dir, `
		mkdir .git/worktrees/new; cd .git/worktrees/new; echo initializing > locked; echo /w/new/.git > gitdir; echo ../.. > commondir
		rm ../*-old/gitdir ../*-old/HEAD`)
	require.Empty(t, c.Undone)
	require.FileExists(t, filepath.Join(dir, ".git/worktrees/new/gitdir"))
	require.NoFileExists(t, filepath.Join(dir, ".git/worktrees", filepath.Base(dir)+"-old", "gitdir"))

	// What git would obey in one that is half there is.
	c = watching(t, dir, `cd .git/worktrees/new; printf '[core]\n fsmonitor = id\n' > config.worktree; echo /evil > commondir`)
	require.ElementsMatch(t, []string{".git/worktrees/new/config.worktree", ".git/worktrees/new/commondir"}, c.Undone)
}
