package origin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// MustSayWhere is the refusal of a thread from elsewhere, with what a person must
// know to decide. again is what to type after "uwf thread" to say it.
func (j Judge) MustSayWhere(ctx context.Context, id string, head protocol.Hash, facts heads.Facts, again string) error {
	workflow, dir := "unknown", "unknown"
	if t, err := thread.Open(ctx, j.Store, head); err == nil {
		dir = place.Shown(t.Start.Cwd)
		if w, err := t.Workflow(ctx); err == nil {
			workflow = fmt.Sprintf("%s %s", place.Shown(w.Name), t.Start.Workflow)
		}
	}
	err := fault.New(protocol.CodeUsage, "thread %s %s; its workflow is %s; where it was made it worked in %s. Say where it may work here",
		id, j.whence(facts), workflow, dir)
	return fault.Hinted(err, "uwf thread read "+id+" shows what it is about",
		"uwf thread "+again+" --cwd "+plaintext.Word(j.Env.Dir)+" lets it work here, now and later")
}

// Inherited is what is known of a fork from a node: if that is of a thread from
// elsewhere, or of none of this home, the fork is from there, too.
func (j Judge) Inherited(ctx context.Context, t *thread.Thread, node protocol.Hash) (heads.Facts, error) {
	origin, known, err := j.of(ctx, t.StartHash)
	if err != nil {
		return heads.Facts{}, err
	}
	facts := heads.Facts{Fork: &heads.Fork{Thread: origin, Step: node}} // it counts what it costs from here
	imported := known.Imported
	switch {
	case origin == "":
		imported = &heads.Imported{AtMs: j.Env.Now().UnixMilli()}
	case known.Doubt != nil:
		imported = &heads.Imported{Lost: true}
	}
	if imported != nil {
		inherited := *imported
		inherited.Inherited, inherited.Lost = true, false // where the fork was made is known
		facts.Imported, facts.Workspace = &inherited, known.Workspace
	}
	if own := known.Limits; own != nil {
		facts.Limits = budget.Said(protocol.Limits{MaxCostUSD: own.MaxCostUSD, MaxTokens: own.MaxTokens, MaxTimeMs: own.MaxTimeMs})
	}
	return facts, nil
}

// of finds the thread of this home that has a start; "": none has it. If there
// are several, it is one from elsewhere before our own, an imported one before its
// forks, and one whose directory nobody has said before the others.
func (j Judge) of(ctx context.Context, start protocol.Hash) (id string, known heads.Facts, err error) {
	all, damaged := j.Heads.AllFacts(ctx)
	if damaged != nil && all == nil {
		return "", heads.Facts{}, damaged
	}
	standings, _ := heads.Standings(ctx, j.Heads) // of a thread that cannot be read no fork is made
	// The most foreign first, then the newest: a fork is mostly of one of the last.
	ids := slices.SortedFunc(maps.Keys(standings), func(a, b string) int {
		return cmp.Or(originRank(all[b])-originRank(all[a]), threadid.Compare(b, a))
	})
	for _, other := range ids {
		t, err := thread.Open(ctx, j.Store, standings[other].Head)
		if err != nil || t.StartHash != start {
			continue // damaged: its start is not the one that was just read
		}
		return other, all[other], ctx.Err()
	}
	return "", heads.Facts{}, ctx.Err()
}

// originRank is how foreign a thread is.
func originRank(facts heads.Facts) int {
	rank := 0
	if facts.Imported != nil || facts.Doubt != nil {
		rank++
		if !facts.StartedHere() {
			rank += 2
		}
	}
	if facts.Foreign() {
		rank++
	}
	return rank
}

// whence says how it is known that a thread is, or may be, from elsewhere.
func (j Judge) whence(facts heads.Facts) string {
	imported := facts.Imported
	switch {
	case facts.Doubt != nil:
		return fmt.Sprintf("may come from elsewhere: %v (uwf cas fsck)", facts.Doubt)
	case imported.From == "" && imported.Lost:
		return "may come from elsewhere: what facts.jsonl said of it was damaged or lost"
	case imported.From == "":
		return "comes from elsewhere: no thread of this home has made its chain"
	}
	at := time.UnixMilli(imported.AtMs).In(j.Env.Now().Location()).Format(time.DateOnly)
	return fmt.Sprintf("comes from elsewhere: it was imported from %s on %s", place.Shown(imported.From), at)
}
