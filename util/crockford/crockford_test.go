package crockford_test

import (
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/crockford"
)

// vectors are what the original's encoders and decoder do.
type vectors struct {
	U64 []struct {
		Value        string `json:"value"`
		OcasHashForm string `json:"ocasHashForm"`
		UwfUtilForm  string `json:"uwfUtilForm"`
	} `json:"u64"`
	Bits []struct {
		Value     string `json:"value"`
		BitLength int    `json:"bitLength"`
		Encoded   string `json:"encoded"`
	} `json:"bits"`
	Decode []struct {
		Encoded string `json:"encoded"`
		OK      bool   `json:"ok"`
		Value   string `json:"value"`
	} `json:"decode"` // of 64 bits, padded on the right
}

func load(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/crockford.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(text, &v))
	require.NotEmpty(t, v.U64)
	require.NotEmpty(t, v.Bits)
	require.NotEmpty(t, v.Decode)
	return v
}

func TestEncode64(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).U64 {
		n := number(t, v.Value)
		require.Equal(t, v.OcasHashForm, crockford.Encode64(n.Uint64()))
		require.Equal(t, v.UwfUtilForm, crockford.EncodeBits(bitString(n, 64), 64))
		for _, s := range []string{v.OcasHashForm, strings.ToLower(v.OcasHashForm)} {
			got, err := crockford.Decode64(s)
			require.NoError(t, err)
			require.Equal(t, n.Uint64(), got)
		}
	}
}

func TestBits(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Bits {
		want := bitString(number(t, v.Value), v.BitLength)
		require.Equal(t, v.Encoded, crockford.EncodeBits(want, v.BitLength))
		got, err := crockford.DecodeBits(v.Encoded, v.BitLength)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestDecodeBits(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Decode {
		got, err := crockford.DecodeBits(v.Encoded, 64)
		if !v.OK {
			require.Error(t, err, v.Encoded)
			continue
		}
		require.NoError(t, err, v.Encoded)
		require.Equal(t, v.Value, new(big.Int).SetBytes(got).String())
	}
}

func TestDecode64Refuses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]error{
		"":               crockford.ErrLength,
		"000000000000":   crockford.ErrLength,
		"00000000000000": crockford.ErrLength,
		"G000000000000":  crockford.ErrRange,
		"zzzzzzzzzzzzz":  crockford.ErrRange,
	} {
		_, err := crockford.Decode64(s)
		require.ErrorIs(t, err, want, s)
	}
	for _, c := range "ILOUilou-!@[`{/:\x00\xff" {
		_, err := crockford.Decode64("000000000000" + string(c))
		require.Error(t, err, "%q", c)
	}
	_, err := crockford.Decode64("0I00000000000")
	charErr := new(crockford.CharError)
	require.ErrorAs(t, err, &charErr)
	require.Equal(t, byte('I'), charErr.Char)
}

func FuzzDecode64(f *testing.F) {
	f.Add("0000000000000")
	f.Add("FZZZZZZZZZZZZ")
	f.Add("fpe5xvfy4ksbx")
	f.Add("G000000000000")
	f.Fuzz(func(t *testing.T, s string) {
		n, err := crockford.Decode64(s)
		if err == nil {
			require.Equal(t, strings.ToUpper(s), crockford.Encode64(n), "one number, one text")
		}
	})
}

func FuzzBits(f *testing.F) {
	f.Add([]byte{0xff}, 8)
	f.Add([]byte{0x80, 0x01}, 13)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 8*len(b) {
			return
		}
		got, err := crockford.DecodeBits(crockford.EncodeBits(b, n), n)
		require.NoError(t, err)
		require.Len(t, got, (n+7)/8)
		for bit := range n {
			require.Equal(t, b[bit/8]>>(7-bit%8)&1, got[bit/8]>>(7-bit%8)&1)
		}
	})
}

func number(t *testing.T, s string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	require.True(t, ok, s)
	return n
}

// bitString is a number of n bits as a bit string.
func bitString(v *big.Int, n int) []byte {
	size := (n + 7) / 8
	return new(big.Int).Lsh(v, uint(8*size-n)).FillBytes(make([]byte, size))
}
