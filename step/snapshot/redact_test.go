//go:build unix

package snapshot_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// A redacted content disappears from our packs at once, but nothing else does, even what nothing references yet. A
// pack of the user's repository stays as it is.
func TestRedactPacked(t *testing.T) {
	t.Parallel()
	w := repository(t, "[home]") // the path is not a pattern
	w.sh(`git repack -q -a -d; echo secret > key; echo x > a`)
	key := strings.TrimSpace(w.sh(`git hash-object key`))
	tree := w.take().Tree
	young := strings.TrimSpace(w.sh(`
		echo young | git --git-dir="$STORE" hash-object -w --stdin
		find "$STORE/objects" -type f -path '*/objects/??/*' | sed 's,.*/\(..\)/,\1,' |
			git --git-dir="$STORE" pack-objects -q "$STORE/objects/pack/pack" >"$STORE/packed"
		git --git-dir="$STORE" prune-packed -q`))
	all := func() string { return w.sh(`git --git-dir="$STORE" cat-file --batch-all-objects --batch-check`) }
	before, user := all(), w.user()
	require.Contains(t, before, key)
	require.Zero(t, w.loose())
	redact := func(path string) []string {
		done, err := snapshot.Redact(t.Context(), w.env, w.spec.Git, w.repo.Common, path, []protocol.Tree{tree})
		require.NoError(t, err)
		require.Equal(t, []protocol.Tree{tree}, done.Trees)
		tree = snapshot.Substitute(t.Context(), w.env, w.spec.Git, tree)
		return done.Remains
	}
	w.sh(`cd "$STORE"; mkdir -p import-1.tmp objects/17; cp objects/pack/*.pack import-1.tmp
		cp objects/pack/pack-$(cat packed).pack objects/pack/pack-1.pack; cp objects/pack/pack-1.pack objects/pack/tmp_pack_aBcDeF
		cp objects/pack/pack-1.pack objects/17/tmp_obj_aBcDeF; touch -d '20 minutes ago' import-1.tmp objects/17/*`)
	require.Empty(t, redact("key"))
	w.sh(`cd "$STORE"; test ! -e import-1.tmp -a ! -e objects/pack/pack-1.pack -a -z "$(find . -name 'tmp_*')"`)
	require.NotContains(t, all(), key)
	for line := range strings.Lines(before) {
		if !strings.HasPrefix(line, key) {
			require.Contains(t, all(), line)
		}
	}
	require.Contains(t, all(), young)
	w.sh(`test ! -e "$STORE/objects/pack/pack-$(cat "$STORE/packed").pack"; git --git-dir="$STORE" fsck --strict`)
	require.Equal(t, user, w.user())

	remains := redact("d/b") // committed by the user
	require.Len(t, remains, 2)
	require.Equal(t, user, w.user())
}
