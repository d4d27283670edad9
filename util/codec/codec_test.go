package codec_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/codec"
)

type value struct {
	n     uint64
	i     int64
	yes   bool
	names []string
}

func (v *value) code(c *codec.Coder) {
	if !c.Version("v1") {
		return
	}
	c.Uint(&v.n)
	c.Int(&v.i)
	c.Bool(&v.yes)
	codec.List(c, &v.names, c.Text)
}

func TestCoder(t *testing.T) {
	t.Parallel()
	for _, v := range []value{{}, {1, -1, true, []string{"", "\xff", "text"}}, {math.MaxUint64, math.MinInt64, true, []string{"x"}}} {
		data := codec.Encode(v.code)
		var got value
		require.NoError(t, codec.Decode(data, got.code))
		require.Equal(t, v, got)
		for n := range data[3:] {
			require.ErrorIs(t, codec.Decode(data[:3+n], (&value{}).code), codec.ErrDamaged, "%d bytes", 3+n)
		}
	}
	huge := append(codec.Encode(func(c *codec.Coder) { c.Version("v1") }), 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f)
	require.ErrorIs(t, codec.Decode(huge, (&value{}).code), codec.ErrDamaged, "it makes no room for them")
	require.NoError(t, codec.Decode([]byte("\x02v2"), (&value{}).code), "the caller judges versions")
}
