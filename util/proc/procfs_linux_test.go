package proc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want stat
		ok   bool
	}{
		"plain":    {"42 (sleep) S 1 43 41 0 -1", stat{"S", 1, 43, 41, ""}, true},
		"brackets": {"42 (a) Z 9 9 (b) R 1 42 40 0", stat{"R", 1, 42, 40, ""}, true},
		"whole":    {"7 (a) S 1 43 41 0 -1 4194560 106 0 0 0 0 0 0 0 20 0 1 0 96893 5804032 232", stat{"S", 1, 43, 41, "96893"}, true},
		"cut":      {"42 (sleep) S 1 42", stat{}, false},
		"odd":      {"42 (sleep) S 1 42 x 0", stat{}, false},
		"empty":    {"", stat{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseStat(tt.text)
			require.Equal(t, tt.ok, ok)
			if ok {
				require.Equal(t, tt.want, got)
			}
		})
	}
}
