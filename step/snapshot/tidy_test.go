//go:build unix

package snapshot_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// age makes everything in our git directory old enough to be collected.
func (w *world) age() {
	w.Helper()
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(w, filepath.WalkDir(filepath.Join(w.spec.Git, "objects"), func(p string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(p, old, old)
		}
		return err
	}))
}

// loose returns the number of our loose objects.
func (w *world) loose() int {
	w.Helper()
	return strings.Count(w.sh(`find "$STORE/objects" -type f -links 1 -path '*/objects/??/*'`), "\n")
}

func (w *world) collect(needs snapshot.Needs, dry bool) snapshot.Collected {
	w.Helper()
	c, err := snapshot.Collect(w.Context(), w.env, w.spec.Git, w.repo.Common, needs, dry, func(run func() error) error { return run() })
	require.NoError(w, err)
	return c
}

// Snapshots of deleted threads are removed unless others reference them; the user's git directory is
// unchanged.
func TestCollect(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`echo shared > a`)
	shared := w.take().Tree
	w.sh(`echo its own > a; echo its own > d/b`)
	own := w.take().Tree
	w.spec.Ref, w.spec.Index = "refs/uwf/two", w.spec.Index+".two"
	w.spec.Tree = ""
	require.NoError(t, w.repo.SeedIndex(w.spec))
	w.sh(`echo of two > a`)
	two := w.take().Tree
	w.age()
	before := w.user()

	needs := snapshot.Needs{Gone: func(thread string) bool { return thread == "one" }, Trees: []protocol.Tree{shared, protocol.Tree("sha1:" + strings.Repeat("1", 40))}}
	require.Equal(t, 1, w.collect(needs, true).Threads)
	require.True(t, snapshot.Has(t.Context(), w.env, w.spec.Git, own))
	require.Equal(t, 1, w.collect(needs, false).Threads)
	has := func(tree protocol.Tree) bool { return snapshot.Has(t.Context(), w.env, w.spec.Git, tree) }
	require.True(t, has(shared))
	require.True(t, has(two))
	require.False(t, has(own))
	require.Zero(t, w.loose())
	w.sh(`git fsck --strict; git --git-dir="$STORE" fsck --strict`)
	require.Equal(t, before, w.user())
	w.restore(shared)

	// Now nothing references it.
	w.age()
	needs.Trees, needs.Gone = nil, func(string) bool { return true }
	require.Equal(t, 1, w.collect(needs, false).Threads)
	require.False(t, has(shared))
}

// A damaged list doesn't prevent the next snapshot or a collection, which keeps what it and older versions list.
func TestADamagedList(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`echo first > a`)
	first := w.take().Tree
	w.sh(`printf 'one 12345' >> "$STORE/uwf-snapshots"; echo second > a`)
	second := w.take().Tree
	w.sh(`git --git-dir "$STORE" update-ref refs/uwf-kept/` + sum(second) + " " + sum(second) + `; echo third > a`)
	third := w.take().Tree
	require.Equal(t, []protocol.Tree{first, second, third}, w.listed())
	w.sh(`git --git-dir "$STORE" update-ref refs/uwf/two $(git --git-dir "$STORE" commit-tree -m x ` + sum(first) + `)`)
	w.age()
	needs := snapshot.Needs{Gone: func(string) bool { return false }, Trees: []protocol.Tree{second}}
	w.collect(needs, false)
	require.Equal(t, "refs/uwf-kept/all\nrefs/uwf/two\n", w.sh(`git --git-dir "$STORE" for-each-ref --format='%(refname)'`))
	needs.Gone = func(thread string) bool { return thread == "two" }
	w.collect(needs, false)
	for _, tree := range []protocol.Tree{first, second, third} {
		require.True(t, snapshot.Has(t.Context(), w.env, w.spec.Git, tree))
	}
	require.Equal(t, "refs/uwf-kept/all\n", w.sh(`git --git-dir "$STORE" for-each-ref --format='%(refname)'`))
}

// The user's packs stay shared; those that the user's git has replaced are removed.
func TestCollectPacks(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git repack -q -a -d; echo x > a`)
	tree := w.take().Tree
	shared := strings.TrimSpace(w.sh("ls .git/objects/pack/*.pack"))
	w.collect(snapshot.Needs{Gone: func(string) bool { return false }}, false)
	theirs, err := os.Stat(filepath.Join(w.root, shared))
	require.NoError(t, err)
	ours, err := os.Stat(filepath.Join(w.spec.Git, "objects", "pack", filepath.Base(shared)))
	require.NoError(t, err)
	require.True(t, os.SameFile(theirs, ours))

	w.sh(`git commit -qam two; git repack -q -a -d`)
	w.age()
	w.collect(snapshot.Needs{Gone: func(string) bool { return false }}, false)
	require.NoFileExists(t, filepath.Join(w.spec.Git, "objects", "pack", filepath.Base(shared)))
	w.sh(`git --git-dir="$STORE" fsck --strict`)
	w.restore(tree)
}

// A collection of a partial clone's snapshots doesn't need the objects that the clone lacks.
func TestCollectPartial(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config uploadpack.allowFilter true; git clone -q --filter=blob:none --no-checkout "file://$PWD" ../partial
		cd ../partial; git sparse-checkout set --no-cone /a; git checkout -q`)
	w.root = filepath.Join(w.dir, "partial")
	w.sh(`echo changed > a`)
	tree := w.take().Tree
	w.age()
	w.collect(snapshot.Needs{Gone: func(string) bool { return false }}, false)
	require.Zero(t, w.loose())
	w.sh(`git checkout -q a`)
	w.restore(tree)
}

// After many snapshots, their objects are packed, and none is lost.
func TestTidy(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	require.NoError(t, snapshot.Tidy(t.Context(), w.env, w.spec.Git, w.repo.Common))
	first := w.loose()
	w.sh(`mkdir many; for i in $(seq 4000); do echo $i > many/$i; done`)
	many := w.take().Tree
	require.Greater(t, w.loose(), first+3500)
	require.NoError(t, snapshot.Tidy(t.Context(), w.env, w.spec.Git, w.repo.Common))
	require.Zero(t, w.loose())
	w.sh(`rm -r many; echo new > new`)
	w.take()
	require.NoError(t, snapshot.Tidy(t.Context(), w.env, w.spec.Git, w.repo.Common))
	require.NotZero(t, w.loose(), "few are left alone")
	w.sh(`git --git-dir="$STORE" fsck --strict`)
	w.restore(many)
}

func TestGitVersion(t *testing.T) {
	t.Parallel()
	w := repository(t)
	v, err := snapshot.GitVersion(t.Context(), w.env, w.root)
	require.NoError(t, err)
	require.True(t, v.AtLeast(2, 31), fmt.Sprint(v))
}

// A collection removes half-written files of a killed git.
func TestHalfWrittenObjects(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.take()
	for _, path := range []string{"17/tmp_obj_aBcDeF", "pack/tmp_pack_aBcDeF", "new-one/17/tmp_obj_aBcDeF"} {
		path = filepath.Join(w.spec.Git, "objects", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o400))
	}
	w.age()
	w.collect(snapshot.Needs{Gone: func(string) bool { return false }}, false)
	require.Empty(t, w.sh(`find "$STORE/objects" -name '*tmp*' -o -name 'new-*'`))
	w.take()
}
