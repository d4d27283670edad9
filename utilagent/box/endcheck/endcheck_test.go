package endcheck

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// shell runs a script in a directory, with the machine's git but none of its settings.
func shell(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

// newRepository contains a file of each kind that is checked.
func newRepository(t *testing.T) Options {
	t.Helper()
	dir := tempDir(t)
	shell(t, dir, `git init -q; git commit -q --allow-empty -m first; mkdir -p .workflow .cursor a/b docs .git/info; echo mine > .workflow/x.yaml
		echo '{}' > .cursor/hooks.json; echo x > docs/config; touch .env .env.local .env.example docs/.env; git init -q inner; git -C inner commit -q --allow-empty -m x
		git -C inner config alias.mine '!true'; cp -r inner/.git docs/bare.git; mkdir -p .git/modules/dir; cp -r inner/.git .git/modules/dir/sub`)
	return Options{Workspace: dir, GitDirs: []string{filepath.Join(dir, ".git")}}
}

// check runs a script between Begin and End.
func check(t *testing.T, o Options, script string, settled ...string) Changes {
	t.Helper()
	b, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, script)
	c, err := b.End(nil, settled...)
	require.NoError(t, err)
	return c
}

func TestFound(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	shell(t, o.Workspace, "mkdir sub; echo gitdir: ../.git/modules/dir/sub > sub/.git; mkdir -p .hg .vscode .github/hooks; touch .hg/hgrc .vscode/mcp.json .vscode/settings.json")
	b, err := Begin(o)
	require.NoError(t, err)
	git := filepath.Join(o.Workspace, ".git")
	require.Equal(t, Found{
		GitDirs:      []string{git, filepath.Join(git, "modules/dir/sub"), filepath.Join(o.Workspace, "docs/bare.git"), filepath.Join(o.Workspace, "inner/.git")},
		Repositories: []string{"docs/bare.git", "inner/.git", "sub/.git"},
		Obeyed:       []string{".cursor", ".github/hooks", ".hg/hgrc", ".vscode/mcp.json", ".workflow"},
		Secrets:      []string{".env", ".env.local", "docs/.env"},
	}, b.Found())
	o.Most = 3
	b, err = Begin(o)
	require.NoError(t, err)
	require.True(t, b.Found().Cut)
}

func TestDisarmed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         Changes
	}{
		{"nothing", "true", Changes{}},
		{"everyday git", `echo x > f; git add .; git commit -qm two 2>/dev/null; git tag t; git branch x; git stash list; git gc -q; mkdir new; touch new/f`, Changes{}},
		{"another common directory", `echo ../evil > .git/commondir`, Changes{Disarmed: []string{".git/commondir"}}},
		{"common link", `ln -s ../evil .git/commondir`, Changes{Disarmed: []string{".git/commondir"}}},
		{"common directory", `mkdir .git/commondir; touch .git/commondir/x`, Changes{Disarmed: []string{".git/commondir"}}},
		{"config.worktree", `git config -f .git/config.worktree core.fsmonitor id`, Changes{Disarmed: []string{".git/config.worktree"}}},
		{"an old remote", `mkdir -p .git/remotes; echo "URL: ext::sh" > .git/remotes/x`, Changes{Disarmed: []string{".git/remotes"}}},
		{"a submodule's config", `git config -f .git/modules/dir/sub/config core.fsmonitor id`, Changes{Disarmed: []string{".git/modules/dir/sub/config"}}},
		{"a submodule's hook", `echo id > .git/modules/dir/sub/hooks/post-checkout`, Changes{Disarmed: []string{".git/modules/dir/sub/hooks"}}},
		{"a submodule's common directory", `echo ../evil > .git/modules/dir/sub/commondir`, Changes{Disarmed: []string{".git/modules/dir/sub/commondir"}}},
		{"a new submodule's repository", `git init -q m; mv m/.git .git/modules/m`, Changes{Disarmed: []string{".git/modules/m/config"}}},
		{"worktree module", `git worktree add -q w; git init -q m; mkdir .git/worktrees/w/modules; mv m/.git .git/worktrees/w/modules/m`, Changes{Disarmed: []string{".git/worktrees/w/modules/m/config"}}},
		{"an inner repository", `git -C inner config core.pager id`, Changes{Disarmed: []string{"inner/.git/config"}}},
		{"an inner hook", `echo id > inner/.git/hooks/post-commit`, Changes{Disarmed: []string{"inner/.git/hooks"}}},
		{"an inner common directory", `echo ../../evil > inner/.git/commondir`, Changes{Disarmed: []string{"inner/.git/commondir"}}},
		{"another inner one", `git init -q n; rm -r inner; mv n inner`, Changes{Disarmed: []string{"inner/.git/config"}}},
		{"moved inner one", `mv inner a/b`, Changes{Disarmed: []string{"a/b/inner/.git/config"}}},
		{"moved settings of agents", `mv .cursor docs`, Changes{Moved: []string{"docs/.cursor"}}},
		{"a link to a plan", `mkdir plan; echo exec id > plan/git-rebase-todo; ln -s ../plan .git/rebase-merge`, Changes{Runs: []string{".git/rebase-merge"}}},
		{"a bare one's hook", `echo id > docs/bare.git/hooks/pre-receive`, Changes{Disarmed: []string{"docs/bare.git/hooks"}}},
		{"a new repository", `git init -q a/new`, Changes{Disarmed: []string{"a/new/.git/config"}}},
		{"with a hook", `git init -q a/new; echo id > a/new/.git/hooks/post-commit`, Changes{Disarmed: []string{"a/new/.git/config", "a/new/.git/hooks"}}},
		{"in a closed directory", `mkdir x; git init -q x/new; chmod 111 x/new x`, Changes{Disarmed: []string{"x/new/.git/config"}}},
		{"that is closed", `git init -q n; chmod 0 n/.git`, Changes{Disarmed: []string{"n/.git/config"}}},
		{"with names only", `git init -q n; chmod 400 n`, Changes{Disarmed: []string{"n/.git/config"}}},
		{"in node_modules", `mkdir -p node_modules/x; git init -q node_modules/x`, Changes{Disarmed: []string{"node_modules/x/.git/config"}}},
		{"a bare repository", `git init -q --bare o.git; echo id > o.git/hooks/post-receive`, Changes{Disarmed: []string{"o.git/config", "o.git/hooks"}}},
		{"a bare clone", `git clone -q --bare . copy.git`, Changes{Disarmed: []string{"copy.git/config"}}},
		{"somebody's directory made one", `cd docs; mkdir objects refs; echo ref: refs/heads/x > HEAD; git config -f config core.fsmonitor id`, Changes{Disarmed: []string{"docs/HEAD"}}},
		{"the top made one", `mv .git g; mkdir objects refs; echo ref: refs/heads/x > HEAD; git config -f config core.fsmonitor id; mv g .git`, Changes{Disarmed: []string{"config"}}},
		{"one with a common directory", `mkdir y; cd y; echo ref: refs/heads/x > HEAD; echo ../inner/.git > commondir`, Changes{Disarmed: []string{"y/commondir"}}},
		{"a separate one", `git init -q --separate-git-dir "$PWD/store" tree`, Changes{Disarmed: []string{"store/config"}}},
		{"a repository within another's", `git init -q e; mkdir -p t .git/hidden; mv e/.git .git/hidden/x; echo gitdir: ../.git/hidden/x > t/.git`, Changes{Disarmed: []string{".git/hidden/x/config"}}},
		{"a repository within an inner one's", `git init -q e; mkdir -p t; mv e/.git inner/.git/x; echo gitdir: ../inner/.git/x > t/.git`, Changes{Disarmed: []string{"inner/.git/x/config"}}},
		{"repositories in git directories", `for x in .git/.git .git/x/.git .git/logs/.git inner/.git/y; do mkdir -p "$(dirname $x)"; git init -q e; mv e/.git $x; done`,
			Changes{Disarmed: []string{".git/.git/config", ".git/logs/.git/config", ".git/x/.git/config", "inner/.git/y/config"}}},
		{"pointers in git directories", `git init -q "$HOME-e"; mkdir .git/x; echo "gitdir: $HOME-e/.git" > .git/.git; ln -s "$HOME-e/.git" .git/x/.git`, Changes{Disarmed: []string{".git/.git", ".git/x/.git"}}},
		{"a work tree in a git directory", `git worktree add -q .git/tree`, Changes{}},
		{"a repository elsewhere", `mkdir t; git init -q "$HOME-e"; echo "gitdir: $HOME-e/.git" > t/.git`, Changes{Disarmed: []string{"t/.git"}}},
		{"outward link", `mkdir t; git init -q "$HOME-e"; ln -s "$HOME-e/.git" t/.git`, Changes{Disarmed: []string{"t/.git"}}},
		{"inward link", `git init -q e; mkdir t; ln -s ../e/.git t/.git`, Changes{Disarmed: []string{"e/.git/config"}}},
		{"a worktree", `git worktree add -q linked; git -C linked commit -q --allow-empty -m y`, Changes{}},
		{"a worktree's config", `git worktree add -q linked; git config -f .git/worktrees/linked/config.worktree core.fsmonitor id`, Changes{Disarmed: []string{".git/worktrees/linked/config.worktree"}}},
		{"a worktree's common directory", `git worktree add -q linked; echo /evil > .git/worktrees/linked/commondir`, Changes{Disarmed: []string{".git/worktrees/linked/commondir"}}},
		{"evil worktree", `mkdir -p e/worktrees/x e/objects e/refs t; git config -f e/config core.fsmonitor id; echo ../.. > e/worktrees/x/commondir; echo ref: refs/heads/x > e/worktrees/x/HEAD; echo gitdir: ../e/worktrees/x > t/.git`, Changes{Disarmed: []string{"e/config"}}},
		{"an agent's servers", `echo '{"mcpServers":{}}' > .mcp.json`, Changes{Moved: []string{".mcp.json"}}},
		{"an agent's directory", `mkdir -p sub/.claude; echo '{}' > sub/.claude/settings.json`, Changes{Moved: []string{"sub/.claude"}}},
		{"a read-only one", `mkdir -p sub/.claude; echo '{}' > sub/.claude/settings.json; chmod 500 sub/.claude sub`, Changes{Moved: []string{"sub/.claude"}}},
		{"a repository in it", `mkdir .claude; git init -q .claude/x`, Changes{Moved: []string{".claude"}, Disarmed: []string{".claude/x/.git/config"}}},
		{"beside its worktrees", `mkdir -p .claude/worktrees/a; touch .claude/settings.local.json .claude/worktrees/a/f; mkdir .claude/worktrees/a/.gemini`, Changes{Moved: []string{".claude/settings.local.json", ".claude/worktrees/a/.gemini"}}},
		{"known agent directory", `touch .cursor/mcp.json; mkdir .workflow/info; touch .workflow/info/y.yaml`, Changes{Moved: []string{".cursor/mcp.json", ".workflow/info"}}},
		{"more workflows", `mkdir .workflows; touch .workflows/y.yaml; mkdir -p a/b/c; ln -s /etc a/b/c/.Workflow`, Changes{Moved: []string{".workflows", "a/b/c/.Workflow"}}},
		{"a home", `mkdir -p a/.uwf/cas; touch a/.uwf/config.yaml`, Changes{Moved: []string{"a/.uwf"}}},
		{"other programs'", `for name in .github/hooks/x.json .hg/hgrc .jj/repo/config.toml .vscode/mcp.json crush.json .amp/settings.json .hg/store/x .vscode/settings.json; do mkdir -p "$(dirname "$name")"; touch "$name"; done`,
			Changes{Moved: []string{".amp", ".github/hooks", ".hg/hgrc", ".jj/repo/config.toml", ".vscode/mcp.json", "crush.json"}}},
		{"a replacement", "git replace HEAD $(git commit-tree -m evil HEAD^{tree})", Changes{Hiding: []string{".git/refs/replace/ID"}}},
		{"a packed one", "git replace HEAD $(git commit-tree -m evil HEAD^{tree}); git pack-refs --all", Changes{Hiding: []string{".git/refs/replace/ID"}}},
		{"assumed", "git add docs/config; git update-index --assume-unchanged docs/config", Changes{Hiding: []string{"docs/config (assume-unchanged)"}}},
		{"skipped", "git add docs/config; git update-index --index-version 4 --skip-worktree docs/config", Changes{Hiding: []string{"docs/config (skip-worktree)"}}},
		{"skipped, then removed", "git add docs/config; git update-index --skip-worktree docs/config; rm docs/config", Changes{}},
		{"continued rebase", `for i in a b; do git commit -q --allow-empty -m $i; done; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1; echo "exec touch x" >> .git/rebase-merge/git-rebase-todo`,
			Changes{Runs: []string{".git/rebase-merge/git-rebase-todo"}}},
		{"a rebase", `for i in a b; do git commit -q --allow-empty -m $i; done; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1`, Changes{}},
		{"plans", `mkdir -p .git/rebase-merge .git/sequencer inner/.git/rebase-merge; cd .git; echo x id > rebase-merge/done; echo 'pick a' > sequencer/todo; ln -s /etc/passwd rebase-merge/git-rebase-todo
			echo exec id > ../inner/.git/rebase-merge/git-rebase-todo.backup`,
			Changes{Runs: []string{".git/rebase-merge/done", ".git/rebase-merge/git-rebase-todo", "inner/.git/rebase-merge/git-rebase-todo.backup"}}},
		{"deep modules", `git init -q e; mkdir -p .git/modules/a/b/c/d/e/f/g/h/i/j/k; mv e/.git .git/modules/a/b/c/d/e/f/g/h/i/j/k/l`, Changes{Disarmed: []string{".git/modules/a/b/c/d/e/f/g/h/i/j/k/l/config"}}},
		{"many modules", `cd .git/modules; seq 5010 | xargs mkdir`, Changes{Closed: []string{".git/modules"}}},
		{"no settings", `rm -r inner .cursor .workflow docs .git/modules`, Changes{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := newRepository(t)
			got := check(t, o, c.script)
			prosetest.Text(t, strings.ReplaceAll(got.String(), o.Workspace, "WORKSPACE"))
			for i, name := range got.Hiding {
				if at, _, ok := strings.Cut(name, "refs/replace/"); ok {
					got.Hiding[i] = at + "refs/replace/ID"
				}
			}
			require.Equal(t, c.want, got)
			again := check(t, o, "true")
			require.Equal(t, c.want.Closed, again.Closed)
			again.Closed = nil
			require.Equal(t, Changes{}, again, "it is told once")
		})
	}
}

// Nothing that a command created runs when a person uses git afterwards.
func TestNothingRunsLater(t *testing.T) {
	t.Parallel()
	const evil = `git init -q; git commit -q --allow-empty -m x; git config core.fsmonitor "touch $EVIL"; `
	for _, c := range []struct{ name, before, script, then string }{
		{"tracked new one", "", `mkdir new; cd new; ` + evil + `cd ..; git -c core.fsmonitor= add new`, "git status"},
		{"deep", "mkdir -p a/b/c/d/e/f; git init -q a/b/c/d/e/f", `cd a/b/c/d/e/f; ` + evil, "cd a/b/c/d/e/f; git status"},
		{"separate git directory", "git init -q --separate-git-dir sep tree", `cd tree; ` + evil, "cd tree; git status"},
		{"bare, among files", "mkdir docs; echo x > docs/f", `cd docs; mkdir objects refs; echo ref: refs/heads/x > HEAD; printf '[core]\nfsmonitor = touch %s\nbare = false\nworktree = .\n' "$EVIL" > config`, "cd docs; git status || true"},
		{"a hook of a place to push to", "", `git init -q --bare o.git; echo "touch $EVIL" > o.git/hooks/post-receive; chmod +x o.git/hooks/*`, "git push -q o.git HEAD:refs/heads/x"},
		{"a hook where one pushes to", "git init -q --bare o.git; git remote add origin ./o.git", `echo "touch $EVIL" > o.git/hooks/post-receive; chmod +x o.git/hooks/*`, "git push -q origin HEAD:refs/heads/x"},
		{"continued rebase", "for i in a b; do git commit -q --allow-empty -m $i; done", `GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1; printf "exec touch $EVIL\n\t x\ttouch $EVIL\n" >> .git/rebase-merge/git-rebase-todo`, "git rebase --continue"},
		{"a link as .git", "", `mkdir e; cd e; ` + evil + `cd ..; mkdir new; ln -s ../e/.git new/.git`, "cd new; git status"},
		{"a common directory", "", `git init -q e; git -C e config core.fsmonitor "touch $EVIL"; git -C e commit -q --allow-empty -m x; echo ../e/.git > .git/commondir`, "git status"},
		{"what core.hooksPath names", "git config core.hooksPath .hooks", `mkdir .hooks; echo "touch $EVIL" > .hooks/post-commit; chmod +x .hooks/*`, "git commit -q --allow-empty -m x"},
		{"what include.path names, anew", "git config include.path ../a/b/shared", `mkdir -p c/b; git config -f c/b/shared core.fsmonitor "touch $EVIL"; ln -s c a`, "git status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			set := "EVIL='" + filepath.Join(t.TempDir(), "evil") + "'; "
			shell(t, dir, "git init -q; git commit -q --allow-empty -m first; "+c.before)
			o := Options{Workspace: dir, GitDirs: []string{filepath.Join(dir, ".git")}, Pointed: []string{".hooks", "a/b/shared"}}
			require.NotEmpty(t, check(t, o, set+c.script).String())
			shell(t, dir, set+`rm -f "$EVIL"; (`+c.then+`); test ! -e "$EVIL"`)
		})
	}
}

// A repository created by a command keeps working for the next one.
func TestNewRepositoriesKeepWorking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"init":      {`git init -q n; cd n; touch f; git add f; git commit -qm f`, `cd n; git status; git log -1; echo x > f; git commit -qam g; git branch x; git checkout -q x`},
		"clone":     {`git clone -q inner n`, `cd n; git log -1 origin/main; git commit -q --allow-empty -m y; git fetch -q ../inner; mv .git/config.uwf-new .git/config; git fetch -q`},
		"bare":      {`git init -q --bare n.git; git push -q n.git HEAD:main`, `git ls-remote n.git; git push -q n.git HEAD:x; git clone -q n.git m`},
		"submodule": {`git -c protocol.file.allow=always submodule --quiet add "$PWD/inner" sub`, `git submodule status; git -C sub status; git -C sub commit -q --allow-empty -m x; git status; git commit -qam sub`},
		"worktree":  {`git worktree add -q n`, `cd n; git commit -q --allow-empty -m x; git fetch -q ../inner; cd ..; git worktree remove n`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newRepository(t)
			check(t, o, c[0])
			shell(t, o.Workspace, c[1])
		})
	}
}

// Checked settings keep their names, and existing names are not overwritten.
func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	for n := range 3 {
		c := check(t, o, "git init -q n")
		require.Equal(t, []string{"n/.git/config"}, c.Disarmed)
		require.Len(t, strings.Fields(shell(t, o.Workspace, "ls -d n/.git/config*")), n+1)
	}
	for _, want := range []string{"uwf-new-mcp.json", "uwf-new-mcp.json.1"} {
		require.Equal(t, []string{".mcp.json"}, check(t, o, "echo "+want+" > .mcp.json").Moved)
		require.Equal(t, want+"\n", shell(t, o.Workspace, "cat "+want))
	}
	require.Equal(t, []string{".claude"}, check(t, o, "mkdir .claude").Moved)
	require.DirExists(t, filepath.Join(o.Workspace, "uwf-new-claude"))
	// In a directory whose whole contents are obeyed, any name would be obeyed.
	require.Equal(t, []string{".workflow/deep", ".workflow/y.yaml"}, check(t, o, "mkdir .workflow/deep; touch .workflow/deep/z.yaml; echo y > .workflow/y.yaml").Moved)
	require.Equal(t, "x.yaml\n", shell(t, o.Workspace, "ls -A .workflow"))
	require.Equal(t, "y\n", shell(t, o.Workspace, "cat uwf-new-workflow__y.yaml"))
	require.FileExists(t, filepath.Join(o.Workspace, "uwf-new-workflow__deep/z.yaml"))
}

// Existing targets of git settings are left alone.
func TestPointed(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	o.Pointed = []string{".husky", "a/b/shared", "docs/config", "gone/x"}
	shell(t, o.Workspace, "mkdir .husky")
	c := check(t, o, "touch .husky/pre-commit a/b/shared; echo y > docs/config")
	require.Equal(t, []string{"a/b/shared"}, c.Moved)
}

func TestAllowedByName(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	o.Allowed = func(path string) bool {
		rel, err := filepath.Rel(o.Workspace, path)
		require.NoError(t, err)
		return slices.Contains([]string{".mcp.json", "n/.git", "inner/.git/hooks", ".git/config.worktree"}, rel)
	}
	c := check(t, o, "touch .mcp.json .git/config.worktree .git/commondir; mkdir .claude; git init -q n; git init -q m; echo id > inner/.git/hooks/x; git -C inner config a.b c")
	require.Equal(t, Changes{Moved: []string{".claude"}, Disarmed: []string{".git/commondir", "inner/.git/config", "m/.git/config"}}, c)
}

// Another process can finish what this one began.
func TestAnotherProcessEnds(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	b, err := Begin(o)
	require.NoError(t, err)
	file := filepath.Join(tempDir(t), "before")
	require.NoError(t, b.Save(file))
	shell(t, o.Workspace, "git init -q n; echo x > .git/commondir; touch .mcp.json; git -C inner config a.b c; echo y > .cursor/new")
	b, err = Load(file, func(path string) bool { return filepath.Base(path) == ".mcp.json" })
	require.NoError(t, err)
	c, err := b.End(nil)
	require.NoError(t, err)
	require.Equal(t, Changes{Moved: []string{".cursor/new"}, Disarmed: []string{".git/commondir", "inner/.git/config", "n/.git/config"}}, c)
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err = Load(file, nil)
	require.Error(t, err)
}

// The workspace is a linked worktree with its git directories elsewhere.
func TestALinkedWorktree(t *testing.T) {
	t.Parallel()
	base := tempDir(t)
	shell(t, base, `git init -q r; cd r; touch f; git add f; git commit -qm first; git worktree add -q ../tree; git worktree add -q ../other`)
	common := filepath.Join(base, "r/.git")
	own := filepath.Join(common, "worktrees/tree")
	o := Options{Workspace: filepath.Join(base, "tree"), GitDirs: []string{own, common}}
	require.Empty(t, check(t, o, "git commit -q --allow-empty -m x; git checkout -q -b y; git -C ../r worktree add -q ../third").String())
	c := check(t, o, `git update-index --assume-unchanged f; cd ../r/.git; echo x > commondir; git config -f worktrees/tree/config.worktree a.b c; git config -f worktrees/other/config.worktree a.b c; mkdir worktrees/tree/hooks; touch worktrees/tree/hooks/x`)
	require.Equal(t, Changes{
		Disarmed: []string{
			filepath.Join(common, "commondir"), filepath.Join(common, "worktrees/other/config.worktree"),
			filepath.Join(own, "config.worktree"), filepath.Join(own, "hooks"),
		},
		Hiding: []string{"f (assume-unchanged)"},
	}, c)
	// Other processes create worktrees concurrently; sparse ones have a config.
	const sparse = `git -C ../r sparse-checkout init --cone; git -C ../r config extensions.worktreeConfig true; git -C ../r worktree add -q ../sparse; `
	require.Empty(t, check(t, o, sparse+`git -C ../sparse sparse-checkout set x; git init -q ../m; mkdir -p ../r/.git/worktrees/sparse/modules; mv ../m/.git ../r/.git/worktrees/sparse/modules/m`, filepath.Join(common, "config")).String())
	require.FileExists(t, filepath.Join(common, "worktrees/sparse/modules/m/config"))
	later := filepath.Join(common, "worktrees/later")
	c = check(t, o, `git -C ../r worktree add -q ../later; cd ../r/.git/worktrees/later; echo /x > commondir; git config -f config.worktree core.fsmonitor id`)
	require.Equal(t, []string{filepath.Join(later, "commondir"), filepath.Join(later, "config.worktree")}, c.Disarmed)
	require.Equal(t, "first\n", shell(t, filepath.Join(base, "later"), "git log --format=%s"), "it works again")
	c = check(t, o, `git init -q evil; echo "gitdir: evil/.git" > .git`)
	require.Equal(t, []string{"evil/.git/config"}, c.Disarmed)
}

// A repository that was replaced by another one counts as new.
func TestTheRepositoryIsAnother(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	require.Equal(t, []string{".git/config"}, check(t, o, "git init -q e; mv .git old; mv e/.git .git; rm -rf old").Disarmed)
	o = newRepository(t)
	other := tempDir(t)
	shell(t, other, "git init -q; git config user.name c")
	require.Equal(t, []string{".git"}, check(t, o, "rm -rf .git; ln -s "+other+"/.git .git").Disarmed)
	require.FileExists(t, filepath.Join(other, ".git/config"), "it is the user's")
	o = newRepository(t)
	require.Equal(t, []string{"moved/config", "moved/modules/dir/sub/config"}, check(t, o, "mv .git moved").Disarmed)
}

// The index keeps facts about directories between runs, valid while nothing has changed.
func TestTheIndex(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	o.Index = filepath.Join(tempDir(t), "index")
	future := time.Now().Add(time.Hour)
	o.Now = func() time.Time { return future } // all changes are old enough
	first, err := Begin(o)
	require.NoError(t, err)
	require.FileExists(t, o.Index)
	second, err := Begin(o)
	require.NoError(t, err)
	require.Equal(t, first.Found(), second.Found())
	shell(t, o.Workspace, "mkdir -p a/b/.claude; touch -r docs a/b")
	c, err := second.End(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a/b/.claude"}, c.Moved)
	require.NoError(t, os.WriteFile(o.Index, []byte("broken"), 0o600))
	third, err := Begin(o)
	require.NoError(t, err)
	require.Equal(t, first.Found(), third.Found())
}

// What a command made before another one began is new for both, and what the second one restored is as well.
func TestSince(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	future := time.Now().Add(time.Hour)
	o.Now = func() time.Time { return future } // all changes are old enough
	first, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "git init -q n; git -C n config core.fsmonitor id")
	second, err := Begin(o)
	require.NoError(t, err)
	second.Since(first)
	settings := filepath.Join(o.Workspace, "n/.git/config")
	for _, b := range []*Before{first, second} {
		c, err := b.End(nil, settings)
		require.NoError(t, err)
		require.Equal(t, []string{"n/.git/config"}, c.Disarmed)
		shell(t, o.Workspace, "mv n/.git/config.uwf-new n/.git/config")
	}
}

// A directory changed within a tick of being noted is read again.
func TestARacyDirectoryIsReadAgain(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	b, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "mkdir a/.claude")
	var now stamp
	l, err := b.open()
	require.NoError(t, err)
	now, err = stampOf(l.spaces[0].top, "a")
	require.NoError(t, err)
	l.close()
	b.Dirs["a"].Stamp, b.Dirs["a"].Noted = now, now.Changed+int64(tick)-1 // as if the clock had stopped
	c, err := b.End(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a/.claude"}, c.Moved)
}

// Nothing can hide behind many directories.
func TestAFloodHidesNothing(t *testing.T) {
	t.Parallel()
	const plants = `mkdir -p zz docs/a/.workflow; git init -q zz/deep; `
	o := newRepository(t)
	b, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "mkdir flood; cd flood; seq 1000 | xargs mkdir; cd ..; "+plants)
	c, err := b.End(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"docs/a/.workflow"}, c.Moved)
	require.Equal(t, []string{"zz/deep/.git/config"}, c.Disarmed)

	b, err = Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "mkdir -p more/a/b; cd more/a/b; seq 300 | xargs mkdir; git init -q 99/x; cd ../../..; mkdir flat; cd flat; seq 300 | xargs mkdir; git init -q 300")
	c, err = b.end(nil, 100)
	require.NoError(t, err)
	require.NotEmpty(t, c.Closed)
}

// A plan that is too large to check stays if it is unchanged. Otherwise it is renamed, never removed.
func TestPlansThatAreTooLarge(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	const large = ".git/rebase-merge/git-rebase-todo"
	shell(t, o.Workspace, `mkdir .git/rebase-merge; cd .git/rebase-merge; echo x > git-rebase-todo
		yes 'pick 0123456789012345678901234567890123456789 x' | head -30000 > done`)
	require.NoError(t, os.Truncate(filepath.Join(o.Workspace, large), maxPlan+1))
	require.Empty(t, check(t, o, "true").String())
	require.Equal(t, []string{large}, check(t, o, "echo exec id >> "+large).Runs)
	info, err := os.Stat(filepath.Join(o.Workspace, large+".uwf-new"))
	require.NoError(t, err)
	require.EqualValues(t, maxPlan+1+len("exec id\n"), info.Size())
	require.Empty(t, check(t, o, "echo pick a >> .git/rebase-merge/done").String())
	c := check(t, o, "cd .git/rebase-merge; mv done x; mkdir done; touch done/mine")
	require.Equal(t, []string{".git/rebase-merge/done"}, c.Runs)
	require.Equal(t, "mine\n", shell(t, o.Workspace, "ls .git/rebase-merge/done.uwf-new"))
}

func FuzzTame(f *testing.F) {
	for _, seed := range []string{"", "pick a\nexec id\n", " \tx\tid", "x\nexec\n", "exec", "#x\nxx\nexecute a\n", "exec a\r\n", "x \\\n b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		kept := string(tame([]byte(text), nil))
		for line := range strings.SplitSeq(kept, "\n") {
			for _, command := range []string{"x", "exec"} {
				rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), command)
				require.False(t, ok && rest != "" && strings.ContainsAny(rest[:1], " \t\r"), "%q", line)
			}
		}
		require.Equal(t, text, string(tame([]byte(text), allLines(text))), "what was there stays")
	})
}

func allLines(text string) map[string]bool {
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		known[strings.TrimSpace(line)] = true
	}
	return known
}

func BenchmarkEnd(b *testing.B) {
	for _, dirs := range []int{0, 218, 2000, 20_000} {
		b.Run(fmt.Sprint(dirs), func(b *testing.B) {
			dir := tempDir(b)
			shell(b, dir, "git init -q")
			for i := range dirs {
				require.NoError(b, os.MkdirAll(filepath.Join(dir, fmt.Sprint(i%20), fmt.Sprint(i)), 0o755))
			}
			o := Options{Workspace: dir, GitDirs: []string{filepath.Join(dir, ".git")}, Most: 100_000, Index: filepath.Join(tempDir(b), "index")}
			o.Now = func() time.Time { return time.Now().Add(time.Hour) }
			for what, run := range map[string]func(*Before) error{
				"begin": func(*Before) error { _, err := Begin(o); return err },
				"end":   func(before *Before) error { _, err := before.End(nil); return err },
			} {
				b.Run(what, func(b *testing.B) {
					before, err := Begin(o)
					require.NoError(b, err)
					for b.Loop() {
						require.NoError(b, run(before))
					}
				})
			}
		})
	}
}

// A link to a directory that only the command could write is removed. Links inside the workspace and old
// links stay.
func TestLinksOut(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	cache := tempDir(t)
	o.Outside = []string{cache}
	shell(t, o.Workspace, "mkdir d; ln -s "+cache+" before; ln -s d inside")
	b, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "ln -s "+cache+" out; ln -s "+cache+"/no dangling; ln -s d here; ln -s /usr/bin usr")
	c, err := b.End(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"dangling", "out"}, c.Links)
	require.Equal(t, "before\nhere\ninside\nusr\n", shell(t, o.Workspace, "ls -d before here inside usr out dangling 2>/dev/null || true"))
}

// A missing repository is reported.
func TestLost(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	b, err := Begin(o)
	require.NoError(t, err)
	shell(t, o.Workspace, "rm -rf .git/refs")
	c, err := b.End(nil)
	require.NoError(t, err)
	require.Equal(t, o.GitDirs, c.Lost)
}

// A new directory at the target of a git setting is moved away, even if it replaced an old one.
func TestPointedIsAnother(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	shell(t, o.Workspace, "mkdir -p tools/hooks; touch tools/hooks/x")
	o.Pointed = []string{"tools/hooks"}
	require.Empty(t, check(t, o, "mv tools t2; mv t2 tools").Moved)
	require.Equal(t, []string{"tools/hooks"}, check(t, o, "mv tools t2; mkdir -p tools/hooks; echo id > tools/hooks/pre-commit").Moved)
}

// Very deep directories and long paths are reported.
func TestDeep(t *testing.T) {
	t.Parallel()
	o := newRepository(t)
	b, err := Begin(o)
	require.NoError(t, err)
	root, err := os.OpenRoot(o.Workspace)
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, root.MkdirAll(strings.Repeat(strings.Repeat("x", 200)+"/", 25)+".claude", 0o755))
	long, err := b.End(nil)
	require.NoError(t, err)
	require.Len(t, long.Closed, 1)
	c := check(t, newRepository(t), "d=x; for i in $(seq 150); do d=$d/x; done; mkdir -p $d; git init -q $d")
	require.Len(t, c.Closed, 1)
}
