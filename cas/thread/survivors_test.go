package thread_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/thread"
)

// losing is a store that has lost nodes but still lists them.
type losing struct {
	*fsstore.Store
	lost map[cas.Hash]bool
}

func (l losing) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if l.lost[h] {
		return cas.Node{}, cas.ErrNotFound
	}
	return l.Store.Get(ctx, h)
}

// Behind a lost step the newest complete ones are found, including those of forks; steps after the loss
// aren't.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	chain := f.chain(6)
	other := f.next("planner")
	other.SessionID = "another"
	fork := f.step(chain[1], other) // replaces chain[2]
	last := *f.open(chain[4]).Last
	for name, c := range map[string]struct {
		lost, want []cas.Hash
	}{
		"the step before is lost":    {chain[3:4], []cas.Hash{chain[2], fork}},
		"and the one before that":    {chain[2:4], []cas.Hash{fork}},
		"and every one at its place": {[]cas.Hash{chain[3], chain[2], fork}, chain[1:2]},
		"nothing is left":            {chain[:4], nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := losing{f.store, map[cas.Hash]bool{}}
			for _, h := range c.lost {
				s.lost[h] = true
			}
			got, err := thread.Survivors(t.Context(), s, last)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, got)
		})
	}
}
