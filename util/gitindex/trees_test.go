package gitindex

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// repository is a git repository in which commands run.
type repository struct {
	testing.TB
	dir, format string
}

func newRepository(t testing.TB, format string) repository {
	r := repository{t, t.TempDir(), format}
	r.git("", "init", "-q", "--object-format="+format)
	r.git("", "read-tree", "--empty") // creates the index
	return r
}

func (r repository) git(input string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x",
		"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x")
	out, err := cmd.CombinedOutput()
	require.NoError(r, err, "%v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// tree returns the tree of the index.
func (r repository) tree() (root string, ok bool) {
	r.Helper()
	index, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	require.NoError(r, err)
	size := map[string]int{"sha1": sha1.Size, "sha256": sha256.Size}[r.format]
	sum, ok := Trees(index, size, func(_, tree []byte) ([]byte, bool) {
		all := append(fmt.Appendf(nil, "tree %d\x00", len(tree)), tree...)
		short, long := sha1.Sum(all), sha256.Sum256(all)
		return map[int][]byte{sha1.Size: short[:], sha256.Size: long[:]}[size], true
	})
	return hex.EncodeToString(sum), ok
}

// Trees are those that git writes, for random changes of a random index.
func TestTreesAreGits(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	parts := []string{"a", "a.b", "a-", "a0", "A", "b", "\xff\xfe", "é", " ", "\t\"\\", "x\ny", strings.Repeat("long", 40)}
	modes := []string{"100644", "100755", "120000", "160000"}
	for i, format := range []string{"sha1", "sha256", "sha1", "sha256"} {
		r, random := newRepository(t, format), rand.New(rand.NewPCG(seed, uint64(i)))
		if i > 1 {
			r.git("", "update-index", "--index-version=4")
		}
		sums := strings.Fields(r.git("", "hash-object", "-w", "--", ".git/config", ".git/HEAD", ".git/description"))
		for range 25 {
			var lines strings.Builder
			for range random.IntN(30) {
				var path []string
				for range 1 + random.IntN(4) {
					path = append(path, parts[random.IntN(len(parts))])
				}
				sum, mode := sums[random.IntN(len(sums))], modes[random.IntN(len(modes))]
				if random.IntN(4) == 0 {
					mode = "0"
				}
				fmt.Fprintf(&lines, "%s %s\t%s\x00", mode, sum, strings.Join(path, "/"))
			}
			r.git(lines.String(), "update-index", "--replace", "--add", "-z", "--index-info")
			root, ok := r.tree()
			require.True(t, ok)
			require.Equal(t, r.git("", "write-tree"), root)
		}
	}
}

// Trees returns false for an index that only git can handle.
func TestUnusualIndexes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		ok     bool
	}{
		"plain":           {"git update-index --add d/a", true},
		"skipped":         {"git update-index --skip-worktree d/b", true},
		"assumed":         {"git update-index --assume-unchanged d/b", true},
		"intended to add": {"git add -N d/a", false},
		"conflict":        {`printf '100644 %s 1\td/b\n' $(git rev-parse :d/b) | git update-index --index-info`, false},
		"sparse":          {"git sparse-checkout set --cone --sparse-index d; git update-index --add d/a", false},
		"empty":           {"git rm -qr --cached .", true},
		"rebuilt":         {"rm .git/index; git add .", true},
		"untracked cache": {"git update-index --untracked-cache --add d/a", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, "sha1")
			for _, file := range []string{"d/b", "d/e/c", "out/f"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(r.dir, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(r.dir, file), nil, 0o644))
			}
			r.git("", "add", ".")
			r.git("", "commit", "-qm", "x")
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "d/a"), []byte("a"), 0o644))
			cmd := exec.Command("sh", "-ec", c.script)
			cmd.Dir = r.dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			root, ok := r.tree()
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, r.git("", "write-tree"), root)
			}
		})
	}
}

func FuzzTrees(f *testing.F) {
	for _, version := range []uint32{2, 3, 4} {
		f.Add(index(version, "a", "dir/b", "dir/c/d", "e"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := 0
		Trees(text, sha1.Size, func(dir, tree []byte) ([]byte, bool) { n++; return make([]byte, sha1.Size), true })
		require.LessOrEqual(t, n, len(text)+1)
	})
}
