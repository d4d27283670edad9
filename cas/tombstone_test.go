package cas_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A tombstone reads back unchanged, and has only one form.
func TestTombstone(t *testing.T) {
	t.Parallel()
	stone := cas.Tombstone{Hash: "0123456789ABC", Type: "7VQ43ZSJTEWA7", Reason: "a key, … in it", Seal: cas.Seal{1, 2}, At: 1_780_000_000_000}
	for _, want := range []cas.Tombstone{stone, {Hash: stone.Hash, Type: stone.Type}, {Hash: stone.Hash, Type: stone.Type, Foreign: true}} {
		file, err := cas.MarshalTombstone(want)
		require.NoError(t, err)
		require.True(t, cas.IsTombstone(file))
		got, err := cas.UnmarshalTombstone(want.Hash, file)
		require.NoError(t, err)
		require.Equal(t, want, got)
		_, err = cas.XXH3.UnmarshalFile(want.Hash, file)
		redacted, ok := cas.AsRedacted(err)
		require.True(t, ok)
		require.Equal(t, want, redacted.Tombstone)
		_, err = cas.UnmarshalTombstone("0000000000000", file)
		var corrupt *cas.CorruptError
		require.ErrorAs(t, err, &corrupt)
		for i := range file {
			bad := append([]byte{}, file...)
			bad[i] ^= 1 << (i % 8)
			_, err := cas.XXH3.UnmarshalFile(want.Hash, bad)
			require.ErrorAs(t, err, &corrupt, "byte %d", i)
		}
	}
	_, err := cas.MarshalTombstone(cas.Tombstone{Reason: strings.Repeat("x", cas.MaxReason+1)})
	require.Error(t, err)
	prosetest.Error(t, (&cas.RedactedError{Tombstone: stone}))
}

// The tombstone parser never panics, and marshaling an accepted one gives the same bytes.
func FuzzTombstone(f *testing.F) {
	for _, reason := range []string{"", "why"} {
		file, err := cas.MarshalTombstone(cas.Tombstone{Hash: "0123456789ABC", Type: "7VQ43ZSJTEWA7", Reason: reason})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		stone, err := cas.UnmarshalTombstone("0123456789ABC", file)
		if err != nil {
			return
		}
		again, err := cas.MarshalTombstone(stone)
		require.NoError(t, err)
		require.Equal(t, file, again)
	})
}
