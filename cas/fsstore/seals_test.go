package fsstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/record"
)

// An existing seal stays; a different one for the same node is rejected; a torn one is rewritten; damage is
// reported.
func TestSeals(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "cas"), fsstore.Options{})
	n := castest.Node(t, cas.XXH3, "sealed")
	require.NoError(t, s.Put(ctx, n))
	none, err := s.Seal(n.Hash)
	require.NoError(t, err)
	require.True(t, none.IsZero())

	want := cas.SealOf(n, nil)
	mine := map[cas.Hash]cas.Seal{n.Hash: want}
	require.NoError(t, s.KeepSeals(ctx, mine))
	require.NoError(t, s.KeepSeals(ctx, mine))
	kept, err := s.Seal(n.Hash)
	require.NoError(t, err)
	require.Equal(t, want, kept)
	var wrong *cas.SealError
	require.ErrorAs(t, s.KeepSeals(ctx, map[cas.Hash]cas.Seal{n.Hash: {1}}), &wrong)

	castest.FindRecord(t, s.Dir(), n.Hash, record.Seal).Tear()
	none, err = s.Seal(n.Hash)
	require.NoError(t, err)
	require.True(t, none.IsZero())
	require.NoError(t, s.KeepSeals(ctx, mine))
	kept, err = s.Seal(n.Hash)
	require.NoError(t, err)
	require.Equal(t, want, kept)
	castest.FindRecord(t, s.Dir(), n.Hash, record.Seal).Flip()
	_, err = s.Seal(n.Hash)
	require.ErrorAs(t, err, &wrong)
	require.ErrorAs(t, s.KeepSeals(ctx, mine), &wrong, "damage is not hidden")
	var all []cas.Hash
	for h, err := range s.Seals(ctx) {
		require.NoError(t, err)
		all = append(all, h)
	}
	require.Equal(t, []cas.Hash{n.Hash}, all)
}

// Tombstones are stored only for missing nodes; a torn one is rewritten.
func TestBury(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := open(t, filepath.Join(t.TempDir(), "cas"), fsstore.Options{})
	there, gone := castest.Node(t, cas.XXH3, "there"), castest.Node(t, cas.XXH3, "gone")
	require.NoError(t, s.Put(ctx, there))
	stones := []cas.Tombstone{{Hash: there.Hash, Type: there.Type}, {Hash: gone.Hash, Type: gone.Type, Reason: "why", At: 5}}
	buried, err := s.Bury(ctx, stones...)
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{gone.Hash}, buried)
	_, err = s.Get(ctx, there.Hash)
	require.NoError(t, err)
	_, err = s.Get(ctx, gone.Hash)
	redacted, ok := cas.AsRedacted(err)
	require.True(t, ok)
	stones[1].Foreign = true
	require.Equal(t, stones[1], redacted.Tombstone)
	buried, err = s.Bury(ctx, stones...)
	require.NoError(t, err)
	require.Empty(t, buried)

	castest.FindRecord(t, s.Dir(), gone.Hash).Tear()
	_, err = s.Bury(ctx, stones...)
	require.NoError(t, err)
	_, err = s.Get(ctx, gone.Hash)
	_, ok = cas.AsRedacted(err)
	require.True(t, ok)

	// Putting the content replaces an imported tombstone, but not one created here.
	require.NoError(t, s.Commit(ctx, gone))
	_, err = s.Get(ctx, gone.Hash)
	require.NoError(t, err)
	stones[1].Foreign = false
	require.NoError(t, s.Redact(ctx, func() error { return nil }, stones[1]))
	require.NoError(t, s.Commit(ctx, gone))
	_, err = s.Get(ctx, gone.Hash)
	redacted, ok = cas.AsRedacted(err)
	require.True(t, ok)
	require.Equal(t, stones[1], redacted.Tombstone)
	buried, err = s.Bury(ctx, stones...)
	require.NoError(t, err)
	require.Empty(t, buried, "what an import brings does not take the place of our own")
	_, err = s.Get(ctx, gone.Hash)
	redacted, ok = cas.AsRedacted(err)
	require.True(t, ok)
	require.False(t, redacted.Tombstone.Foreign)
}

// A redaction also erases what is in no index: what a kill or a power cut left of a put, and a damaged copy in the
// quarantine.
func TestRedactErasesRemains(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	secret := castest.Node(t, cas.XXH3, strings.Repeat("the secret ", 100))
	for name, tear := range map[string]func(castest.Record){
		"its end is missing": func(r castest.Record) { require.NoError(t, os.Truncate(r.Path, int64(r.At)+r.Head.Size()-20)) },
		"its begin is zeros": func(r castest.Record) {
			r.Overwrite(0, make([]byte, 100))
			flipAt(t, r.Path, r.At)
		},
		"its header is damaged": func(r castest.Record) { flipAt(t, r.Path, r.At) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir, fsstore.Options{})
			require.NoError(t, s.Commit(ctx, castest.Node(t, cas.XXH3, "before"), secret))
			torn := castest.FindRecord(t, dir, secret.Hash)
			tear(torn)
			require.NoError(t, os.Remove(strings.TrimSuffix(torn.Path, ".seg")+".idx"))
			s = open(t, dir, fsstore.Options{})
			require.NoError(t, s.Commit(ctx, castest.Node(t, cas.XXH3, "after"), secret))
			_, err := s.Quarantine(ctx, secret.Hash)
			require.NoError(t, err)
			require.NoError(t, s.Commit(ctx, secret))

			require.NoError(t, s.Redact(ctx, func() error { return nil },
				cas.Tombstone{Hash: secret.Hash, Type: secret.Type, Reason: "why"}))
			castest.RequireErased(t, dir, []byte("the secret the"))
		})
	}
}
