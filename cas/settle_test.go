package cas_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
)

// swept is a store from which nodes are removed until its budget is used up.
type swept struct {
	generation, budget, locked int
}

func (s *swept) LockShared(context.Context) (func() error, error) {
	s.locked++
	return func() error { s.locked--; return nil }, nil
}

func (s *swept) Generation() (string, error) { return strconv.Itoa(s.generation), nil }

func (s *swept) sweep() {
	if s.budget > 0 && s.locked == 0 {
		s.budget, s.generation = s.budget-1, s.generation+1
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		budget, fails  int // removals, and failures of prepare
		prepared       int
		underLock, err bool
	}{
		"nothing removed":               {prepared: 1},
		"removed once":                  {budget: 1, prepared: 2},
		"removed always":                {budget: 100, prepared: 4, underLock: true},
		"fails as something is removed": {budget: 1, fails: 1, prepared: 2},
		"fails":                         {fails: 1, prepared: 1, err: true},
		"fails always":                  {budget: 100, fails: 100, prepared: 4, underLock: true, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &swept{budget: c.budget}
			prepared, referred, underLock := 0, 0, false
			err := cas.Settle(t.Context(), s, func() error {
				s.sweep()
				prepared, underLock = prepared+1, s.locked > 0
				if prepared <= c.fails {
					return failed
				}
				return nil
			}, func() error {
				require.Equal(t, 1, s.locked)
				referred++
				return nil
			})
			require.Equal(t, c.err, errors.Is(err, failed))
			require.Equal(t, !c.err, referred == 1)
			require.Equal(t, c.prepared, prepared)
			require.Equal(t, c.underLock, underLock)
			require.Zero(t, s.locked)
		})
	}
}
