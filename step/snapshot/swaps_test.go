//go:build unix

package snapshot_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// If another program swaps files in the repository while snapshots are taken, nothing is started, nothing is
// written elsewhere, and every snapshot is correct.
func TestSwaps(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`printf '#!/bin/sh\necho "$0" >> %s; exec cat\n' "$EVIL" > ../run; chmod +x ../run; echo '* filter=x' > .gitattributes; git add .; git commit -qm filter
	for n in 1 2 3 4 5 6 7 8 9; do echo $n > n$n; git add .; git commit -qm $n; done; mkfifo ../pipe; echo secret > ../outside/secret`)
	run := filepath.Join(w.dir, "run")
	config, err := os.ReadFile(filepath.Join(w.root, ".git/config"))
	require.NoError(t, err)
	evil := fmt.Appendf(slices.Clip(config), "[filter \"x\"]\n clean = %s\n smudge = %s\n[core]\n fsmonitor = %s\n hooksPath = %s\n", run, run, run, w.dir)
	objects := filepath.Join(w.root, ".git/objects")
	dirs, err := filepath.Glob(filepath.Join(objects, "??"))
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(5, 6))
	swaps := []func(){
		func() { replace(w.root, ".git/config", evil); replace(w.root, ".git/config", config) },
		func() { swap(dirs[r.IntN(len(dirs))], filepath.Join(w.dir, "outside")) },
		func() { swap(filepath.Join(objects, "pack"), filepath.Join(w.dir, "outside")) },
		func() {
			replace(w.root, ".git/objects/info/alternates", []byte(w.spec.Git+"/objects\n"))
			_ = os.Remove(filepath.Join(objects, "info/alternates"))
		},
		func() {
			own := filepath.Join(w.root, ".git/uwf")
			replace(w.root, ".git/uwf/config", evil)
			_ = os.Symlink(filepath.Join(w.dir, "outside"), filepath.Join(own, "objects"))
		},
	}
	require.NoError(t, os.MkdirAll(filepath.Join(w.root, ".git/uwf"), 0o755))
	w.take()
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				swaps[n%len(swaps)]()
			}
		}
	})
	made := map[string]protocol.Tree{}
	for n := range 15 {
		text := fmt.Sprintln("version", n)
		w.write("d/b", text)
		repo, err := snapshot.Find(t.Context(), w.env, w.root)
		if err != nil {
			continue // git saw an inconsistent state
		}
		spec := w.spec
		spec.Tree = ""
		if diskUsage, err := snapshot.Begin(t.Context(), w.env, repo, &spec); err == nil {
			made[text] = diskUsage.Tree
		}
	}
	close(stop)
	swapping.Wait()
	require.NotEmpty(t, made)
	require.NoFileExists(t, filepath.Join(w.dir, "evil"))
	outside, err := os.ReadDir(filepath.Join(w.dir, "outside"))
	require.NoError(t, err)
	require.Len(t, outside, 1)
	w.sh("rm -rf .git/uwf")
	for text, tree := range made {
		require.Equal(t, text, w.sh(`git --git-dir "$STORE" cat-file blob `+strings.TrimPrefix(string(tree), "sha1:")+":d/b"))
	}
	require.NoError(t, filepath.WalkDir(w.spec.Git, func(path string, d fs.DirEntry, err error) error {
		assert.True(t, err != nil || d.IsDir() || d.Type().IsRegular(), path)
		return err
	}))
}

// replace atomically replaces a file's content.
func replace(root, name string, text []byte) {
	path := filepath.Join(root, filepath.FromSlash(name))
	if os.WriteFile(path+".new", text, 0o644) == nil {
		_ = os.Rename(path+".new", path)
	}
}

// swap replaces a directory with a link for a moment.
func swap(dir, to string) {
	if os.Rename(dir, dir+".away") != nil {
		return
	}
	_ = os.Symlink(to, dir)
	_ = os.Remove(dir)
	_ = os.Rename(dir+".away", dir)
}

// Where links are impossible, all objects are copied once, and then only new ones.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"loose":   "true",
		"packed":  "git gc -q",
		"SHA-256": "rm -rf .git; git init -q --object-format=sha256; git add .; git commit -qm x",
		"borrows": "git clone -q --bare . ../lender; git config --bool core.bare false; mkdir -p .git/objects/info; echo ../../../lender/objects > .git/objects/info/alternates; git repack -adlq; git prune-packed",
		"unborn":  "rm -rf .git; git init -q",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repository(t)
			w.sh("head -c 100000 /dev/urandom > random; git add .; git commit -qm random; " + script)
			var err error
			w.repo, err = snapshot.Find(t.Context(), w.env, w.root)
			require.NoError(t, err)
			w.spec = snapshot.Spec{Root: w.repo.Root, Git: w.repo.Store(filepath.Join(w.dir, "uwf")), Index: filepath.Join(w.dir, "uwf", "index"), Ref: "refs/uwf/one"}
			empty := w.repo
			empty.Common = filepath.Join(w.dir, "empty")
			require.NoError(t, os.MkdirAll(filepath.Join(empty.Common, "objects"), 0o755))
			require.NoError(t, empty.Seed(t.Context(), w.spec.Git, false))

			user := w.user()
			require.NoError(t, w.repo.SeedByCopying(t.Context(), w.spec.Git))
			require.Equal(t, user, w.user())
			first := packs(t, w.spec.Git)
			require.NoError(t, w.repo.SeedByCopying(t.Context(), w.spec.Git))
			require.Len(t, packs(t, w.spec.Git), len(first), "nothing is new")
			require.NoError(t, w.repo.SeedIndex(w.spec))
			diskUsage := w.take()
			w.sh(`git --git-dir "$STORE" fsck --strict --no-dangling`)
			if name != "unborn" {
				w.sh(`git gc -q --prune=now; echo more > d/b; git commit -qam more`)
				w.repo.Head = strings.TrimSpace(w.sh("git rev-parse HEAD"))
				require.NoError(t, w.repo.SeedByCopying(t.Context(), w.spec.Git))
			}
			w.restore(diskUsage.Tree)
		})
	}
}

// packs returns the packs of a git directory with their sizes.
func packs(t *testing.T, store string) map[string]int64 {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(store, "objects/pack/*.pack"))
	require.NoError(t, err)
	sizes := map[string]int64{}
	for _, pack := range found {
		info, err := os.Stat(pack)
		require.NoError(t, err)
		sizes[pack] = info.Size()
	}
	return sizes
}

// Git and the user's filters are never looked up in the work tree.
func TestProgramsOnThePath(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`printf '#!/bin/sh\necho "$0" >> %s; exec cat\n' "$EVIL" > ../run; chmod +x ../run; mkdir bin; cp ../run bin/git; cp ../run bin/filter; git config --global filter.x.clean filter; echo '* filter=x' > .gitattributes`)
	e := w.env
	e.Environ = append([]string{"PATH=" + filepath.Join(w.root, "bin") + ":" + os.Getenv("PATH")}, e.Environ[1:]...)
	w.env, e = e, w.env
	first := w.take().Tree
	w.write("d/b", "changed\n")
	second := w.take().Tree
	changes, err := snapshot.Diff(t.Context(), w.env, w.spec.Git, first, second)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.True(t, snapshot.Has(t.Context(), w.env, w.spec.Git, first))
	w.env = e
	require.NoFileExists(t, filepath.Join(w.dir, "evil"))
}

// A pipe that git would wait for is found, and named.
func TestPipeOfRules(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	w.sh("mkdir deep; echo x > deep/x; mkfifo deep/.gitignore")
	began := time.Now()
	_, err := snapshot.Take(t.Context(), w.env, w.spec)
	require.ErrorContains(t, err, filepath.Join(w.root, "deep/.gitignore"))
	require.Less(t, time.Since(began), time.Minute)
	_, err = snapshot.Begin(t.Context(), w.env, w.repo, &w.spec)
	require.ErrorContains(t, err, filepath.Join(w.root, "deep/.gitignore"))
}

// A staged object that our git directory lacks is read from the work tree.
func TestStagedObjectIsMissing(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`echo staged > s; git add s; rm -f .git/objects/$(git rev-parse :s | sed 's#^..#&/#')`)
	require.NoError(t, w.open())
	tree := w.begin().Tree
	require.Equal(t, "staged\n", w.sh(`git --git-dir "$STORE" cat-file blob `+sum(tree)+":s"))
}
