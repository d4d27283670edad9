package jsnumber

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1: "1", -1.5: "-1.5", 0.1: "0.1", 1e20: "100000000000000000000",
		1e21: "1e+21", 1e-6: "0.000001", 1e-7: "1e-7", 1.25e-10: "1.25e-10", 5e-324: "5e-324", -1.5e300: "-1.5e+300",
		math.Inf(1): "Infinity", math.Inf(-1): "-Infinity",
	} {
		require.Equal(t, want, Format(f))
	}
	require.Equal(t, "NaN", Format(math.NaN()))
}

func TestFloat(t *testing.T) {
	t.Parallel()
	for _, v := range []any{2.0, int64(2), 2, uint64(2), json.Number("2")} {
		f, ok := Float(v)
		require.True(t, ok)
		require.Equal(t, 2.0, f)
	}
	for _, v := range []any{nil, "2", true, []any{}, json.Number("x")} {
		_, ok := Float(v)
		require.False(t, ok, v)
	}
}

// FuzzFormat checks that a formatted number parses to the same number.
func FuzzFormat(f *testing.F) {
	f.Add(0.1)
	f.Add(1e21)
	f.Add(-1e-7)
	f.Fuzz(func(t *testing.T, x float64) {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return
		}
		back, err := strconv.ParseFloat(Format(x), 64)
		require.NoError(t, err)
		require.Equal(t, x+0, back+0) // -0 is 0
	})
}
