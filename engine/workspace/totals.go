package workspace

import (
	"context"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// MostTotals is of how many steps it is told at most what they did to the files.
const MostTotals = 500

// Totals is what the newest steps of a chain, at most so many, did to the files, and all of them
// together, by the "" of all; nothing if the files are not kept, or not on this machine.
// It is for people to look at: what goes wrong is not told.
func (e Keeper) Totals(ctx context.Context, head protocol.Hash, most int) map[protocol.Hash]protocol.FileTotals {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil {
		return nil
	}
	store, err := e.WhereKept(ctx, t.Last.Root, t.Last.Files.Tree)
	if err != nil || store == "" {
		return nil
	}
	var of []protocol.Hash
	var pairs [][2]protocol.Tree
	for s, err := range t.Steps(ctx) {
		if err != nil {
			break
		}
		if n := len(pairs); n > 0 && pairs[n-1][0] == "" && s.Files != nil {
			pairs[n-1][0] = s.Files.Tree
		}
		if len(of) == most {
			break
		}
		if s.Files != nil {
			of, pairs = append(of, s.Hash), append(pairs, [2]protocol.Tree{s.Files.Before, s.Files.Tree})
		}
	}
	of, pairs = append(of, ""), append(pairs, [2]protocol.Tree{pairs[len(pairs)-1][0], t.Last.Files.Tree})
	sums, err := files.Totals(ctx, e.Env, store, pairs)
	if err != nil {
		return nil
	}
	totals := map[protocol.Hash]protocol.FileTotals{}
	for i, sum := range sums {
		if sum != nil {
			totals[of[i]] = *sum
		}
	}
	return totals
}
