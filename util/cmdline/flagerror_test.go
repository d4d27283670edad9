package cmdline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagError(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text, message string
		hints         []string
	}{
		"unknown":       {"flag provided but not defined: -ocass", "unknown flag --ocass", []string{"did you mean --ocas?"}},
		"like no other": {"flag provided but not defined: -zzz", "unknown flag --zzz", nil},
		"no value":      {"flag needs an argument: -ocas", "flag --ocas needs a value", nil},
		"a boolean":     {`invalid boolean value "yse" for -all: parse error`, `flag --all takes no value but true and false, got "yse"`, nil},
		"another":       {"something else", "something else", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message, hints := flagError(tt.text, []string{"ocas", "uwf", "all"})
			require.Equal(t, tt.message, message)
			require.Equal(t, tt.hints, hints)
		})
	}
}
