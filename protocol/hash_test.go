package protocol_test

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// TestHashOf compares hashes of numbers with the hashes of the original implementation.
func TestHashOf(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/crockford.json")
	require.NoError(t, err)
	var vectors struct {
		U64 []struct{ Value, OcasHashForm string }
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	require.NotEmpty(t, vectors.U64)
	for _, v := range vectors.U64 {
		n, err := strconv.ParseUint(v.Value, 10, 64)
		require.NoError(t, err)
		h := protocol.HashOf(n)
		require.Equal(t, protocol.Hash(v.OcasHashForm), h)
		require.True(t, h.Valid())
		require.Equal(t, n, h.Number())
	}
}

func TestValidHash(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "000000000000", "00000000000000", "G000000000000", "zzzzzzzzzzzzz", "fpe5xvfy4ksbx"} {
		require.False(t, protocol.Hash(s).Valid(), s)
	}
	for _, c := range "ILOUilou-!@[`{/:\x00\xff" {
		require.False(t, protocol.Hash("000000000000"+string(c)).Valid(), "%q", c)
	}
}

func FuzzHash(f *testing.F) {
	f.Add("0000000000000")
	f.Add("FZZZZZZZZZZZZ")
	f.Add("G000000000000")
	f.Fuzz(func(t *testing.T, s string) {
		if h := protocol.Hash(s); h.Valid() {
			require.Equal(t, h, protocol.HashOf(h.Number()), "one number, one text")
		}
	})
}
