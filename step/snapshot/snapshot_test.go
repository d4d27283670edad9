//go:build unix

package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// TestMain acts as a process that is killed during a restore or snapshot if the environment asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("FILES_TEST_SPEC") == "" {
		tmpfstest.Main(prosetest.Of(m))
	}
	e, err := env.OS()
	if err != nil {
		panic(err)
	}
	spec, _, err := snapshot.ParseSpec(os.Getenv("FILES_TEST_SPEC"))
	if err != nil {
		panic(err)
	}
	if os.Getenv("FILES_TEST_TO") == "" {
		if _, err := snapshot.Take(context.Background(), e, spec); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if _, err := snapshot.Replace(context.Background(), e, spec, "", protocol.Tree(os.Getenv("FILES_TEST_TO"))); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// world is a repository and a home next to it.
type world struct {
	*testing.T
	dir, root string
	env       env.Env
	repo      snapshot.Repo
	spec      snapshot.Spec
}

func newWorld(t *testing.T, below ...string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(append([]string{dir}, below...)...)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	w := &world{T: t, dir: dir, root: filepath.Join(dir, "repo")}
	w.env = env.Env{Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home")}, Dir: dir, Now: time.Now}
	for _, d := range []string{"home", "repo", "uwf", "outside"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	return w
}

// repository returns a world with a commit of two files.
func repository(t *testing.T, below ...string) *world {
	w := newWorld(t, below...)
	w.sh(`git init -q; printf 'one\n' > a; mkdir d; printf 'two\n' > d/b; echo ignored > .gitignore; git add .; git commit -q -m first`)
	return w
}

// sh runs a script in the repository as its user would.
func (w *world) sh(script string) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "sh", "-ec", script)
	cmd.Dir = w.root
	cmd.Env = append(w.env.Environ, "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u", "EVIL="+filepath.Join(w.dir, "evil"), "STORE="+w.spec.Git)
	out, err := cmd.CombinedOutput()
	require.NoError(w, err, "%s: %s", script, out)
	return string(out)
}

// open finds the repository and seeds our git directory.
func (w *world) open() error {
	var err error
	if w.repo, err = snapshot.Find(w.Context(), w.env, w.root); err != nil {
		return err
	}
	w.spec = snapshot.Spec{Root: w.repo.Root, Git: w.repo.Store(filepath.Join(w.dir, "uwf")), Index: filepath.Join(w.dir, "uwf", "index"), Ref: "refs/uwf/one", Partial: w.repo.Partial, Keys: w.repo.Keys}
	if err := w.repo.Seed(w.Context(), w.spec.Git, true); err != nil {
		return err
	}
	return w.repo.SeedIndex(w.spec)
}

// take takes a snapshot and prepares the next one.
func (w *world) take() snapshot.Taken {
	w.Helper()
	if w.spec.Git == "" {
		require.NoError(w, w.open())
	}
	diskUsage, err := snapshot.Take(w.Context(), w.env, w.spec)
	require.NoError(w, err)
	w.spec.Tree = diskUsage.Tree
	return diskUsage
}

// change replaces the files.
func (w *world) change(have, to protocol.Tree) error {
	l, err := snapshot.Prepare(w.Context(), w.env, w.spec, have, to)
	if err != nil {
		return err
	}
	return l.Write(w.Context())
}

func (w *world) restore(to protocol.Tree) {
	w.Helper()
	err := w.change("", to)
	require.NoError(w, err)
	w.spec.Tree = ""
	require.Equal(w, to, w.take().Tree)
}

// listed returns the snapshots of the thread.
func (w *world) listed() []protocol.Tree {
	w.Helper()
	list, err := snapshot.ListedByThread(w.spec.Git)
	require.NoError(w, err)
	return list[filepath.Base(w.spec.Ref)]
}

// added returns the tree that git itself would create from the files.
func (w *world) added() protocol.Tree {
	w.Helper()
	index := filepath.Join(w.dir, "added.index")
	_ = os.Remove(index)
	return protocol.Tree("sha1:" + strings.TrimSpace(w.sh("export GIT_INDEX_FILE="+index+" GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --path-format=absolute --git-path objects) GIT_OBJECT_DIRECTORY="+w.dir+"/objects; mkdir -p $GIT_OBJECT_DIRECTORY; git add -A 2>/dev/null; git write-tree")))
}

// user returns all files of the user's git directory.
func (w *world) user() map[string]string {
	w.Helper()
	found := map[string]string{}
	git := filepath.Join(w.root, ".git")
	require.NoError(w, filepath.WalkDir(git, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		} else {
			found[path] = d.Type().String()
		}
		return nil
	}))
	return found
}

func (w *world) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.root, filepath.FromSlash(name))
	require.NoError(w, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w, os.WriteFile(path, []byte(text), 0o644))
}

// The files of pulled steps are in another git directory than those of our own.
func TestTotalsOfTwoStores(t *testing.T) {
	t.Parallel()
	ours, theirs := repository(t), repository(t)
	ours.write("a", "one\n")
	first := ours.take().Tree
	theirs.write("a", "one\ntwo\n")
	second := theirs.take().Tree
	stores := []string{theirs.spec.Git, ours.spec.Git}
	missing := protocol.Tree("sha1:" + strings.Repeat("0", 40))
	sums, err := snapshot.Totals(t.Context(), ours.env, stores, [][2]protocol.Tree{{first, second}, {first, missing}})
	require.NoError(t, err)
	require.Equal(t, []*protocol.FileTotals{{Files: 1, Added: 1}, nil}, sums)
}

func TestSnapshotsComeBack(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`echo staged > s; git add s; echo unstaged >> a; echo x > d/b; git stash -q; echo again >> a`)
	before := w.user()
	first := w.take()
	require.Equal(t, w.added(), first.Tree)
	list := w.listed()
	require.Equal(t, first.Tree, w.take().Tree)
	require.Equal(t, list, w.listed(), "nothing has changed")

	w.sh(`rm a; mkdir a; echo in > a/in; rm -r d; ln -s a d; chmod +x .gitignore; echo secret > ignored; printf '\377' > "$(printf 'odd \377\nname')"`)
	second := w.take()
	require.NotEqual(t, first.Tree, second.Tree)
	w.restore(first.Tree)
	require.Equal(t, "secret\n", w.sh("cat ignored"))
	require.Equal(t, first.Tree, w.added())
	w.restore(second.Tree)
	require.Equal(t, second.Tree, w.added())
	require.Equal(t, before, w.user())
	require.Empty(t, strings.TrimSpace(w.sh("git for-each-ref refs/uwf refs/uwf-rescue")))
	require.Empty(t, w.sh(`git --git-dir "$STORE" fsck --no-dangling 2>/dev/null`))
	w.sh(`git gc -q --prune=now; git --git-dir "$STORE" fsck --no-dangling`)
}

// A snapshot equals what git would store, for any change.
func TestAnyChange(t *testing.T) {
	t.Parallel()
	w := repository(t)
	r := rand.New(rand.NewPCG(1, 2))
	var trees []protocol.Tree
	for range 25 {
		for range 1 + r.IntN(4) {
			name := []string{"a", "a/x", "d", "d/b", "d/c/e", "f", "ignored", "g h"}[r.IntN(8)]
			path := filepath.Join(w.root, filepath.FromSlash(name))
			if r.IntN(3) == 0 {
				_ = os.RemoveAll(path)
				continue
			}
			for at := filepath.Dir(path); len(at) > len(w.root); at = filepath.Dir(at) {
				if info, err := os.Lstat(at); err == nil && !info.IsDir() {
					require.NoError(t, os.Remove(at))
				}
			}
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			_ = os.RemoveAll(path)
			if r.IntN(5) == 0 {
				require.NoError(t, os.Symlink("../else", path))
			} else {
				require.NoError(t, os.WriteFile(path, fmt.Append(nil, r.IntN(5)), fs.FileMode(0o644+0o111*r.IntN(2))))
			}
		}
		trees = append(trees, w.take().Tree)
		require.Equal(t, w.added(), trees[len(trees)-1])
	}
	w.sh("rm -f ignored")
	for range 15 {
		w.restore(trees[r.IntN(len(trees))])
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take().Tree
	w.sh(`printf 'one\nmore\n' > a; rm d/b; printf '\000' > bin; ln -s x l`)
	second := w.take().Tree
	got, err := snapshot.Diff(t.Context(), w.env, w.spec.Git, first, second)
	require.NoError(t, err)
	require.Equal(t, []snapshot.Change{
		{Path: "a", Status: 'M', Added: 1}, {Path: "bin", Status: 'A', Added: -1, Removed: -1}, {Path: "d/b", Status: 'D', Removed: 1}, {Path: "l", Status: 'A', Added: 1},
	}, got)
	var patch bytes.Buffer
	require.NoError(t, snapshot.Patch(t.Context(), w.env, w.spec.Git, first, second, &patch))
	require.Contains(t, patch.String(), "+more\n")
	got, err = snapshot.Diff(t.Context(), w.env, w.spec.Git, "", first)
	require.NoError(t, err)
	require.Len(t, got, 3)
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	w := repository(t)
	first := w.take().Tree
	w.sh(`echo x > d/new; echo y > new`)
	second := w.take().Tree
	w.restore(first)
	var blocked *snapshot.InTheWayError
	for script, path := range map[string]string{
		`echo new >> .git/info/exclude; echo mine > new`:              "new",
		`echo new >> .git/info/exclude; mkdir new; echo mine > new/x`: "new/x",
	} {
		v := repository(t)
		v.take()
		v.sh(`echo x > d/new; echo y > new`)
		to := v.take().Tree
		v.sh(`rm d/new new`)
		v.take()
		v.sh(script)
		require.NoError(t, v.repo.Seed(t.Context(), v.spec.Git, false))
		state := v.sh("find . -path ./.git -prune -o -type f -exec cksum {} +")
		err := v.change("", to)
		require.ErrorAs(t, err, &blocked, script)
		require.Equal(t, []string{path}, blocked.Paths)
		require.Equal(t, state, v.sh("find . -path ./.git -prune -o -type f -exec cksum {} +"))
	}
	w.sh("echo mine > a")
	var unsaved *snapshot.UnsavedError
	err := w.change(first, second)
	require.ErrorAs(t, err, &unsaved)
	require.Equal(t, []string{"a"}, unsaved.Paths)
	require.Equal(t, "mine\n", w.sh("cat a"))
}

func TestLeftOut(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.spec.MaxFile = 0
	require.NoError(t, w.open())
	w.spec.MaxFile, w.spec.Skip, w.spec.DenyRead = 100, []string{"home"}, []string{"conf/prod.key", "d", "secrets"}
	w.sh(`head -c 101 /dev/zero > big; head -c 200 /dev/zero > a; git init -q nested; git -C nested commit -q --allow-empty -m x; mkdir home conf secrets; echo key > home/k; echo key > conf/prod.key; echo > conf/x; echo key > secrets/k; echo changed > d/b; mkfifo pipe; echo x > locked; chmod 000 locked`)
	diskUsage := w.take()
	want := []string{"big", "nested", "conf/prod.key", "secrets/k"}
	if os.Geteuid() != 0 {
		want = append(want, "locked")
	}
	require.ElementsMatch(t, want, diskUsage.Left)
	names := w.sh(`git --git-dir "$STORE" ls-tree -r --name-only ` + strings.TrimPrefix(string(diskUsage.Tree), "sha1:"))
	for _, out := range []string{"home", "prod.key", "secrets"} {
		require.NotContains(t, names, out)
	}
	require.Contains(t, names, "conf/x\n")
	require.Equal(t, "changed\n", w.sh(`git --git-dir "$STORE" cat-file blob `+strings.TrimPrefix(string(diskUsage.Tree), "sha1:")+":d/b"), "git tracks it")
	require.Contains(t, names, "a\n")
}

func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.ErrorIs(t, w.open(), snapshot.ErrNone)
	w.sh("git init -q")
	var refused *snapshot.RefusedError
	_, err := snapshot.Find(t.Context(), w.env, filepath.Join(w.root, ".git"))
	require.ErrorAs(t, err, &refused)
	for _, elsewhere := range []string{"/etc", w.dir} {
		w.sh("git config core.worktree " + elsewhere)
		require.ErrorAs(t, w.open(), &refused, elsewhere)
	}
	w.sh("git config --unset core.worktree")
	require.NoError(t, w.open())
	w.sh(`mkdir -p .git/objects/info; echo "$STORE/objects" > .git/objects/info/alternates`)
	require.ErrorAs(t, w.open(), &refused, "what we keep is for no repository")
	w.sh(`echo ../../../link > .git/objects/info/alternates; ln -s "$STORE/objects" ../link`)
	require.ErrorAs(t, w.open(), &refused)
	w.sh(`echo ../../../other > .git/objects/info/alternates; mkdir -p ../other/info; echo ../link > ../other/info/alternates`)
	require.ErrorAs(t, w.open(), &refused)
}

// A hostile repository starts no programs and is stored anyway.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	const evil = `printf '#!/bin/sh\necho "$0" >> %s; exec cat\n' "$EVIL" > ../run; chmod +x ../run; run="$PWD/../run"; `
	for name, script := range map[string]string{
		"fsmonitor":             `git config core.fsmonitor "$run"`,
		"included":              `printf '[core]\n fsmonitor = %s\n' "$run" > .git/more; git config include.path more`,
		"hooks":                 `mkdir -p .git/hooks; for h in post-index-change reference-transaction post-checkout pre-commit; do cp ../run .git/hooks/$h; done`,
		"hooksPath":             `mkdir h; cp ../run h/post-index-change; cp ../run h/reference-transaction; git config core.hooksPath "$PWD/h"`,
		"filter":                `git config filter.x.clean "$run"; git config filter.x.smudge "$run"; git config filter.x.required true; echo '* filter=x' > .gitattributes`,
		"filter process":        `git config filter.x.process "$run"; echo '* filter=x' > .git/info/attributes; mkdir -p .git/info`,
		"filter with a sign":    `git config 'filter.a=b.clean' "$run"; echo '* filter=a=b' > .gitattributes`,
		"lfs":                   `git config filter.lfs.clean "$run"; git config filter.lfs.process "$run"; echo '* filter=lfs' > .gitattributes`,
		"diff":                  `git config diff.external "$run"; git config diff.x.command "$run"; git config diff.x.textconv "$run"; echo '* diff=x' > .gitattributes`,
		"programs":              `for k in core.sshCommand core.editor core.pager core.askPass gpg.program credential.helper core.gitProxy core.alternateRefsCommand; do git config $k "$run"; done; git config commit.gpgSign true; git config alias.diff-files "!$run"`,
		"a submodule":           `git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib" sub; git commit -q -m sub; git -C sub config core.fsmonitor "$run"; mkdir -p .git/modules/sub/hooks; cp ../run .git/modules/sub/hooks/post-index-change; git -C sub config filter.x.clean "$run"; echo '* filter=x' > sub/.gitattributes; echo x > sub/x`,
		"a promisor":            `git config remote.o.url "ext::sh -c $run"; git config remote.o.promisor true; git config extensions.partialClone o; git config core.repositoryFormatVersion 1; git config protocol.ext.allow always; rm -f .git/objects/$(git rev-parse HEAD:a | sed 's,^..,&/,')`,
		"our directory once":    `mkdir -p .git/uwf/hooks .git/uwf/refs .git/uwf/info .git/uwf/objects; cp ../run .git/uwf/hooks/reference-transaction; printf '[core]\n fsmonitor = %s\n[filter "x"]\n clean = %s\n' "$run" "$run" > .git/uwf/config; echo '* filter=x' > .git/uwf/info/attributes; echo '* filter=x' > .gitattributes; mkfifo .git/uwf/packed-refs .git/uwf/index; for i in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do ln -s ../../../../outside .git/uwf/objects/$i$j; done; done; ln -s ../../../outside .git/uwf/refs/uwf`,
		"objects elsewhere":     `mv .git/objects ../objects; ln -s ../../objects .git/objects; mkdir ../other; ln -s ../other .git/objects/pack2; for j in 0 1 2 3 4 5 6 7 8 9; do ln -s ../outside .git/objects/0$j 2>/dev/null || true; done`,
		"pipes for objects":     `for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do mkfifo .git/objects/f$j 2>/dev/null || mkfifo .git/objects/f$j/01234567890123456789012345678901234567; done; mkfifo .git/objects/pack/pack-0123456789012345678901234567890123456789.pack; ln -s /etc/passwd .git/objects/pack/pack-0123456789012345678901234567890123456789.idx`,
		"replaced":              `git replace HEAD:a HEAD:d/b`,
		"a link out":            `ln -s /etc out; ln -s ../home h2`,
		"a pipe":                `rm a; mkfifo a`,
		"an exclude that waits": `mkfifo ../pipe; git config core.excludesFile "$PWD/../pipe"; git config core.attributesFile "$PWD/../pipe"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh(evil + script + `; rm -f "$EVIL"; echo changed >> d/b`)
			_ = os.Remove(filepath.Join(w.dir, "evil"))
			user := w.user()
			diskUsage := w.take()
			require.Contains(t, w.sh(`GIT_CONFIG_GLOBAL=/dev/null git --git-dir "$STORE" ls-tree -r --name-only `+strings.TrimPrefix(string(diskUsage.Tree), "sha1:")), "d/b")
			w.write("d/b", "more\n")
			w.write("z", "new\n")
			w.take()
			if name != "a promisor" { // a blob is permanently missing
				w.restore(diskUsage.Tree)
			}
			var patch bytes.Buffer
			if name != "a promisor" {
				require.NoError(t, snapshot.Patch(t.Context(), w.env, w.spec.Git, "", diskUsage.Tree, &patch))
			}
			assert.NoFileExists(t, filepath.Join(w.dir, "evil"))
			assert.Equal(t, user, w.user())
			outside, err := os.ReadDir(filepath.Join(w.dir, "outside"))
			require.NoError(t, err)
			assert.Empty(t, outside)
			assert.NotContains(t, patch.String(), "root:x:")
		})
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		at     string // directory of the work tree, relative to the world's
		sparse bool   // otherwise git would add more than exists
	}{
		"plain":              {},
		"unborn":             {script: "rm -rf .git; git init -q"},
		"SHA-256":            {script: "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -q -m x", sparse: true},
		"detached":           {script: "git checkout -q --detach"},
		"packed":             {script: "git gc -q"},
		"a linked work tree": {script: "git worktree add -q ../tree", at: "tree"},
		"bare, and a tree":   {script: "git clone -q --bare . ../bare; git -C ../bare worktree add -q ../tree", at: "tree"},
		"alternates":         {script: "git clone -q --shared . ../tree; echo ignored > ../tree/.git/info/exclude", at: "tree"},
		"shallow":            {script: "git commit -q --allow-empty -m two; git clone -q --depth 1 file://$PWD ../tree", at: "tree"},
		"a split index":      {script: "git update-index --split-index"},
		"assume unchanged":   {script: "git update-index --assume-unchanged a; git update-index --skip-worktree d/b; echo edit > a; echo edit > d/b", sparse: true},
		"intent to add":      {script: "echo n > n; git add -N n"},
		"staged deletion":    {script: "git rm -q --cached a"},
		"a merge":            {script: "git checkout -q -b o; echo o > a; git commit -qam o; git checkout -q -; echo m > a; git commit -qam m; git merge -q o || true", sparse: true},
		"line ends":          {script: `git config core.autocrlf true; printf 'x\r\n' > a`},
		"a lock":             {script: "touch .git/index.lock", sparse: true},
		"a separate one":     {script: "rm -rf .git; git init -q --separate-git-dir ../sep; git add .; git commit -q -m x"},
		"a rebase":           {script: "git commit -q --allow-empty -m y; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh(c.script + "\ntrue")
			if c.at != "" {
				w.root = filepath.Join(w.dir, c.at)
			}
			first := w.take()
			if !c.sparse {
				require.Equal(t, w.added(), first.Tree)
			}
			if name == "assume unchanged" {
				names := w.sh(`git --git-dir "$STORE" grep -l edit ` + sum(w.spec.Tree))
				require.Equal(t, 2, strings.Count(names, "\n"), names)
			}
			w.write("d/b", "changed\n")
			w.write("new/file", "new\n")
			second := w.take()
			require.NotEqual(t, first.Tree, second.Tree)
			w.restore(first.Tree)
			require.NoFileExists(t, filepath.Join(w.root, "new/file"))
			w.restore(second.Tree)
			require.FileExists(t, filepath.Join(w.root, "new/file"))
		})
	}
}

func TestSparse(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh("mkdir e; echo e > e/f; git add .; git commit -q -m e; git sparse-checkout set d")
	want := strings.TrimSpace(w.sh("git rev-parse HEAD^{tree}"))
	diskUsage := w.take()
	require.Equal(t, protocol.Tree("sha1:"+want), diskUsage.Tree, "what is not checked out is as it was")
	w.write("d/b", "changed\n")
	w.take()
	w.restore(diskUsage.Tree)
	require.NoFileExists(t, filepath.Join(w.root, "e/f"))

	// A file that was written outside is an ordinary one, until it is removed.
	w.write("e/f", "outside\n")
	outside := w.take().Tree
	for _, change := range []string{"echo other > d/b", "echo other > d/b; echo other > e/f; echo new > e/g", "rm -r e"} {
		w.sh(change)
		w.take()
		w.restore(outside)
		require.Equal(t, "outside\n", w.sh("cat e/f"), change)
		require.NoFileExists(t, filepath.Join(w.root, "e/g"))
	}
}

// A file that a sparse checkout omits stays so when its content changes.
func TestSparseMerge(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh("mkdir e; echo e > e/f; git add .; git commit -q -m e; git sparse-checkout set d")
	before := w.take().Tree
	w.sh("git update-index --cacheinfo 100644,$(echo new | git hash-object -w --stdin),e/f; git update-index --skip-worktree e/f; git commit -q -m new")
	require.NoError(t, os.Remove(w.spec.Index))
	after := w.take().Tree
	require.NotEqual(t, before, after)
	w.restore(before)
	w.restore(after)
	require.NoFileExists(t, filepath.Join(w.root, "e/f"))
}

// Objects that the user's git gc removes stay in our git directory, even while gc runs.
func TestCollectionsOfTheUser(t *testing.T) {
	t.Parallel()
	w := repository(t)
	var trees []protocol.Tree
	for n := range 5 {
		w.write("d/b", fmt.Sprintln("version", n))
		trees = append(trees, w.take().Tree)
		w.sh("git commit -qam step; git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now")
		require.NoError(t, w.repo.Seed(t.Context(), w.spec.Git, false))
	}
	for _, tree := range trees {
		w.restore(tree)
	}
	require.False(t, snapshot.Has(t.Context(), w.env, w.spec.Git, "sha1:0123456789012345678901234567890123456789"))
	require.True(t, snapshot.Has(t.Context(), w.env, w.spec.Git, trees[0]))
}

// Objects that the user's git gc moves to another pack while they are linked are linked from there.
func TestCollectionDuringASeed(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"loose": "true", "packed": "git repack -adq; echo new > n; git add n; git commit -qm n"} {
		w := repository(t)
		w.sh(script)
		require.NoError(t, w.open())
		other := filepath.Join(w.dir, "uwf", "other")
		require.NoError(t, snapshot.Repo{Format: "sha1"}.Seed(t.Context(), other, false))
		var once sync.Once
		err := w.repo.SeedWith(t.Context(), other, func(from, to string) error {
			if name == "loose" || strings.Contains(from, "pack-") {
				once.Do(func() { w.sh("git gc -q --prune=now") })
			}
			return os.Link(from, to)
		})
		require.NoError(t, err)
		w.sh("git --git-dir " + other + " rev-list --quiet --objects " + w.sh("git rev-parse HEAD"))
	}
}

func TestSpec(t *testing.T) {
	t.Parallel()
	_, ok, err := snapshot.ParseSpec("")
	require.False(t, ok)
	require.NoError(t, err)
	for _, text := range []string{"{", "{}", `{"root":"/x"}`} {
		_, _, err := snapshot.ParseSpec(text)
		require.Error(t, err, text)
	}
	want := snapshot.Spec{Root: "/r", Git: "/g", Index: "/i", Ref: "refs/uwf/x", Skip: []string{"a"}}
	got, ok, err := snapshot.ParseSpec(want.String())
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
