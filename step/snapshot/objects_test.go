//go:build unix

package snapshot_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Objects can be copied from our git directory to one without a repository, and from there to another
// repository's.
func TestKeepAndBring(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sh(`git init -q --object-format=` + format + `; echo one > a; mkdir d; ln -s ../a d/link; git add .; git commit -q -m first`)
			one := w.take().Tree
			w.sh(`echo two > d/b; chmod +x a`)
			two := w.take().Tree

			from, err := snapshot.OpenObjects(w.env, []string{w.spec.Git})
			require.NoError(t, err)
			var all []gitobject.Object
			for _, line := range strings.Split(strings.TrimSpace(w.sh(`git --git-dir="$STORE" rev-list --objects --no-object-names `+sum(one)+" "+sum(two))), "\n") {
				dir := strings.TrimSpace(w.sh(`git --git-dir="$STORE" cat-file -t `+line)) == "tree"
				content, err := from.Object(t.Context(), protocol.Tree(format+":"+line), dir)
				require.NoError(t, err)
				all = append(all, gitobject.Object{Dir: dir, Content: content})
			}
			_, err = from.Object(t.Context(), protocol.Tree(format+":"+strings.Repeat("1", len(sum(one)))), true)
			prosetest.Error(t, err)
			_, err = from.Object(t.Context(), one, false)
			require.ErrorContains(t, err, "not a blob")
			require.NoError(t, from.Close())
			objects := func(yield func(gitobject.Object, error) bool) {
				for _, o := range all {
					if !yield(o, nil) {
						return
					}
				}
			}

			store := filepath.Join(w.dir, "uwf", "imported")
			require.NoError(t, snapshot.AddObjects(t.Context(), w.env, store, one.Function(), objects, len(all)))
			require.NoError(t, snapshot.AddObjects(t.Context(), w.env, store, one.Function(), objects, len(all)), "once more")
			git := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"--git-dir=" + store}, args...)...)
				cmd.Env = w.env.Environ
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				return strings.TrimSpace(string(out))
			}
			git("fsck", "--strict")

			other := newWorld(t)
			other.sh(`git init -q --object-format=` + format)
			other.take()
			require.False(t, snapshot.Has(t.Context(), other.env, other.spec.Git, two))
			require.NoError(t, snapshot.Copy(t.Context(), other.env, store, other.spec.Git, two))
			require.True(t, snapshot.Has(t.Context(), other.env, other.spec.Git, two))
			other.restore(two)
			other.sh(`test -x a && test "$(readlink d/link)" = ../a && test "$(cat d/b)" = two`)
		})
	}
}

// Git verifies objects: a tree with missing files or with a git directory is rejected.
func TestKeepRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sum := make([]byte, 20)
	for name, content := range map[string]string{"missing": "100644 a\x00" + string(sum), "git directory": "40000 .git\x00" + string(sum)} {
		store := filepath.Join(w.dir, "uwf", name)
		objects := func(yield func(gitobject.Object, error) bool) {
			yield(gitobject.Object{Dir: true, Content: []byte(content)}, nil)
		}
		tree := protocol.Tree(fmt.Sprintf("sha1:%040x", 7))
		require.Error(t, snapshot.AddObjects(t.Context(), w.env, store, "sha1", objects, 1), name)
		require.False(t, snapshot.Has(t.Context(), w.env, store, tree))
	}
	broken := func(yield func(gitobject.Object, error) bool) {
		yield(gitobject.Object{}, fmt.Errorf("the bundle cannot be read"))
	}
	err := snapshot.AddObjects(t.Context(), w.env, filepath.Join(w.dir, "uwf", "broken"), "sha1", broken, 1)
	prosetest.Error(t, err)
}

func sum(t protocol.Tree) string {
	return strings.TrimPrefix(strings.TrimPrefix(string(t), "sha1:"), "sha256:")
}

// The paths of homes and repositories are not patterns.
func TestPathIsNoPattern(t *testing.T) {
	t.Parallel()
	w := repository(t, "[home]", `*\?:"`)
	first := w.take().Tree
	w.sh(`echo two > a; echo new > d/new`)
	second := w.take().Tree
	w.restore(first)
	w.restore(second)
	other := newWorld(t, "[other]")
	other.sh(`git init -q`)
	other.take()
	require.NoError(t, snapshot.Copy(t.Context(), other.env, w.spec.Git, other.spec.Git, second))
	other.restore(second)
	totals, err := snapshot.Totals(t.Context(), w.env, []string{other.spec.Git, w.spec.Git}, [][2]protocol.Tree{{first, second}})
	require.NoError(t, err)
	require.Equal(t, []*protocol.FileTotals{{Files: 2, Added: 2, Removed: 1}}, totals)
}

// Git stores large files in packs.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global core.bigFileThreshold 1k`)
	first := w.take().Tree
	w.sh(`seq 3000 > a; seq 4000 > d/new; echo small > small`)
	second := w.take().Tree
	w.restore(first)
	w.restore(second)
	w.sh(`test "$(wc -l < a)" = 3000; test "$(wc -l < d/new)" = 4000; git --git-dir="$STORE" fsck --strict`)
}

// A snapshot changes line ends as git does, also where the user has git refuse that.
func TestSafeCRLF(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"", "--global"} {
		w := repository(t)
		w.sh(`git config ` + where + ` core.autocrlf input; git config ` + where + ` core.safecrlf true; printf 'x\r\n' > a; printf 'x\r\n' > new`)
		require.Empty(t, w.take().Left)
		w.sh(`test "$(git --git-dir="$STORE" cat-file -p ` + sum(w.spec.Tree) + `:new | wc -c)" = 2`)
	}
}

// The user's settings for git don't change what a snapshot, or a copy of it, contains.
func TestSettingsOfTheUser(t *testing.T) {
	t.Parallel()
	w := repository(t)
	w.sh(`git config --global core.ignoreStat true; git config --global pack.packSizeLimit 1m`)
	first := w.take().Tree
	w.sh(`echo 2 > a; head -c 2000000 /dev/urandom > x; head -c 2000000 /dev/urandom > y`)
	second := w.take().Tree
	w.sh(`echo 3 > a`)
	third := w.take().Tree
	require.NotEqual(t, second, third)
	w.restore(first)
	w.restore(third)
	other := newWorld(t)
	other.sh(`git init -q; git config --global pack.packSizeLimit 1m`)
	other.take()
	require.NoError(t, snapshot.Copy(t.Context(), other.env, w.spec.Git, other.spec.Git, third))
	other.restore(third)
}
