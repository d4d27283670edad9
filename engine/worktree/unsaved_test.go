//go:build unix

package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// All that would be lost with a worktree is found, and nothing else keeps it.
func TestOnlyHere(t *testing.T) {
	t.Parallel()
	const clone = `git -C tree clone -q ../sub `
	for name, c := range map[string]struct {
		script string // next to the repository "root", its worktree "tree" and "sub"

	}{
		"nothing":                            {`true`},
		"a commit on the branch":             {`cd tree; git switch -qc own; echo x >> a; git commit -qam own`},
		"a commit on no branch":              {`cd tree; echo x >> a; git commit -qam lost`},
		"a branch left behind":               {`cd tree; git switch -qc own; git checkout -q --detach; echo x >> a; git commit -qam lost; git switch -q own`},
		"reset":                              {`cd tree; echo x >> a; git commit -qam lost; git reset -q --hard HEAD~1`},
		"a commit in a stash":                {`cd tree; echo x >> a; git stash -q`},
		"amended":                            {`cd tree; git switch -qc own; echo x >> a; git commit -qam one; echo y >> a; git commit -q --amend -am two`},
		"rebased":                            {`cd tree; git switch -qc own; echo x >> a; git commit -qam one; echo y >> a; git commit -qam two; git -C ../root commit -q --allow-empty -m main; git rebase -q main`},
		"amended on no branch":               {`cd tree; echo x >> a; git commit -qam one; echo y >> a; git commit -q --amend -am two`},
		"a ref of the worktree":              {`cd tree; git update-ref refs/worktree/mine $(git commit-tree -m lost HEAD^{tree})`},
		"a merge":                            {`cd tree; git switch -qc x; echo x > a; git commit -qam x; git switch -qc y HEAD~1; echo y > a; git commit -qam y; git merge -q x || true`},
		"a bisect":                           {`cd tree; git bisect start -q`},
		"a changed file":                     {`echo x >> tree/a; echo y > tree/new`},
		"an ignored file":                    {`mkdir tree/ignored; echo x > tree/ignored/x`},
		"a clone":                            {clone + `ignored`},
		"a clone with a file":                {clone + `ignored; echo x > tree/ignored/x`},
		"a clone with a commit":              {clone + `ignored; cd tree/ignored; git commit -q --allow-empty -m lost`},
		"a clone with a stash":               {clone + `ignored; cd tree/ignored; echo x > s; git stash -q`},
		"a clone at a tag":                   {`cd sub; git checkout -q --detach; git commit -q --allow-empty -m t; git tag t; git switch -q main; cd ..; ` + clone + `ignored; git -C tree/ignored checkout -q t`},
		"a new repository":                   {`mkdir -p tree/ignored/deep; cd tree/ignored/deep; git init -q; git commit -q --allow-empty -m lost`},
		"rebased by a pull":                  {`cd tree; git switch -qc own; echo x > x; git add x; git commit -qm one; git -C ../root commit -q --allow-empty -m main; git pull -q --rebase ../root main`},
		"only called .git":                   {`mkdir -p tree/ignored/.git tree/ignored/b; echo x > tree/ignored/b/.git`},
		"a submodule":                        {`git -C tree submodule -q update --init`},
		"a submodule with a file":            {`cd tree; git submodule -q update --init; echo x > vendor/x`},
		"a submodule with a commit":          {`cd tree; git submodule -q update --init; git -C vendor commit -q --allow-empty -m lost`},
		"a submodule that was left":          {`cd tree; git submodule -q update --init; cd vendor; git commit -q --allow-empty -m lost; git checkout -q main`},
		"a submodule with a branch":          {`cd tree; git submodule -q update --init; cd vendor; git switch -qc b; git commit -q --allow-empty -m lost; git switch -q main`},
		"a submodule pushed":                 {`cd tree; git submodule -q update --init; cd vendor; git switch -qc b; git commit -q --allow-empty -m pushed; git push -q origin b`},
		"a submodule not checked out":        {`echo x > tree/vendor/x`},
		"a submodule removed":                {`cd tree; git switch -qc own; git submodule -q update --init; git rm -qf vendor; git commit -qm removed`},
		"files for a submodule":              {`cd tree; git rm -qf vendor; mkdir vendor; echo x > vendor/x`},
		"given up within a clone":            {`git clone -q --recurse-submodules sub tree/ignored; cd tree/ignored; git -C inner commit -q --allow-empty -m lost; git submodule -q deinit -f inner`},
		"a submodule with a broken .git":     {`cd tree; git submodule -q update --init; echo x > vendor/x; rm vendor/.git; echo x > vendor/.git`},
		"a submodule within":                 {`cd tree; git submodule -q update --init --recursive; git -C vendor/inner commit -q --allow-empty -m lost`},
		"a file in a submodule within":       {`cd tree; git submodule -q update --init --recursive; echo x > vendor/inner/x`},
		"a submodule given up":               {`cd tree; git submodule -q update --init; git submodule -q deinit -f vendor`},
		"a submodule with a commit given up": {`cd tree; git submodule -q update --init; git -C vendor commit -q --allow-empty -m lost; git submodule -q deinit -f vendor`},
		"a worktree within":                  {`cd tree; git worktree add -q --detach ignored; git -C ignored commit -q --allow-empty -m lost`},
		"several":                            {`cd tree; git submodule -q update --init; echo x > vendor/x; echo x >> a; git commit -qam lost; echo y >> a`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNested(t)
			w.sh(c.script)
			prosetest.Text(t, hashes.ReplaceAllString(w.inspect(true).String(), ": HASH "))
		})
	}
}

// The own files of a possibly incomplete worktree don't count.
func TestHalfMade(t *testing.T) {
	t.Parallel()
	w := newNested(t)
	w.sh(`cd tree; rm a; echo x > new`)
	require.True(t, w.inspect(false).None())
	w.sh(`cd tree; git commit -q --allow-empty -m lost`)
	require.Len(t, w.inspect(false).Commits, 1)
}

type nested struct {
	*testing.T
	dir, base string
	env       env.Env
}

func newNested(t *testing.T) *nested {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &nested{T: t, dir: dir}
	w.env = env.Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, Dir: dir}
	w.sh(`git config --global protocol.file.allow always; git config --global init.defaultBranch main
		git init -q inner; cd inner; echo i > i; git add .; git commit -qm inner; cd ..
		git init -q sub; cd sub; echo s > s; git add .; git submodule -q add ../inner inner; git commit -qm sub; cd ..
		git init -q root; cd root; echo a > a; echo ignored > .gitignore; git add .; git submodule -q add ../sub vendor; git commit -qm first
		git worktree add -q --detach ../tree`)
	w.base = strings.TrimSpace(w.sh(`git -C tree rev-parse HEAD`))
	return w
}

// sh runs a script as the user.
func (w *nested) sh(script string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "sh", "-ec", script)
	cmd.Dir = w.dir
	cmd.Env = append(w.env.Environ, "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u")
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "%s: %s", script, out)
	return string(out)
}

func (w *nested) inspect(status bool) worktree.Unsaved {
	w.Helper()
	repo, err := snapshot.Find(w.Context(), w.env, filepath.Join(w.dir, "tree"))
	require.NoError(w, err)
	var changed []string
	if status {
		changed, err = repo.Status(w.Context())
		require.NoError(w, err)
	}
	only, err := worktree.Inspect(w.Context(), w.env, repo, w.base, changed, nil)
	require.NoError(w, err)
	return only
}

var hashes = regexp.MustCompile(`: [0-9a-f]{7,} `)
