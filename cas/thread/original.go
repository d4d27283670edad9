package thread

import (
	"context"
	"maps"

	"github.com/united-workforce/uwf/cas"
)

// place finds the index and the visits of a step of the original's: it reads the
// chain back to its beginning, or to a step of ours.
func (t *Thread) place(ctx context.Context, last *Step) error {
	visits := map[string]int{last.Role: 1}
	index := 0
	seen := map[cas.Hash]bool{last.Hash: true}
	for s := *last; s.Prev != nil; {
		if seen[*s.Prev] {
			return badLink(s, "comes after it as well: the chain is a circle")
		}
		seen[*s.Prev] = true
		prev, err := t.link(ctx, s)
		if err != nil {
			return err
		}
		if !prev.unplaced {
			index += prev.Index + 1
			for role, n := range prev.Visits {
				visits[role] += n
			}
			break
		}
		index++
		visits[prev.Role]++
		s = prev
	}
	last.settle(index, visits)
	return nil
}

// follow gives a step of the original's the place before a step whose place is
// known.
func (s *Step) follow(next Step) {
	visits := maps.Clone(next.Visits)
	if visits[next.Role]--; visits[next.Role] <= 0 {
		delete(visits, next.Role)
	}
	s.settle(next.Index-1, visits)
}

// settle says a step's place. The original knows no limits, so its steps do not
// count against any.
func (s *Step) settle(index int, visits map[string]int) {
	s.Index, s.Visits, s.LimitBase, s.unplaced = index, visits, index+1, false
}
