package cmdline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestFlagError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, message string
	}{
		"unknown":       {"flag provided but not defined: -ocass", "unknown flag --ocass"},
		"like no other": {"flag provided but not defined: -zzz", "unknown flag --zzz"},
		"no value":      {"flag needs an argument: -ocas", "flag --ocas needs a value"},
		"a boolean":     {`invalid boolean value "yse" for -all: parse error`, `flag --all must be true or false, got "yse"`},
		"another":       {"something else", "something else"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message, hints := flagError(tt.text, []string{"ocas", "uwf", "all"})
			require.Equal(t, tt.message, message)
			prosetest.Text(t, hints)
		})
	}
}
