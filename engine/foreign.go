package engine

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
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// A thread that was imported brings prompts, a workflow and a directory that its
// author chose. Nothing of it runs here until a person has said where; what was
// said is kept beside the thread (package heads, Facts), because its start cannot
// change. Forks of it are as foreign as it is.

// settle finds out where the thread works, or keeps what a person says about it
// now: cwd, "" if nothing.
func (e *Engine) settle(ctx context.Context, h *lockedThread, w Work) error {
	facts, err := e.Heads.Facts(ctx, h.id)
	if err != nil {
		return err
	}
	if facts, err = e.asItsParent(ctx, h.id, facts); err != nil {
		return err
	}
	h.facts = facts
	if w.Cwd == "" {
		if facts.Foreign() {
			return e.mustSayWhere(ctx, h, facts, w.Do)
		}
		if facts.Workspace != nil {
			h.root, h.workspace = facts.Workspace.Root, facts.Workspace
			if err := e.comeBack(ctx, h, facts.Workspace); err != nil {
				return err
			}
		}
		return e.trustsImported(ctx, h, facts)
	}
	if e.lastFiles(ctx, h.head) != nil { // no worktree is made for what is refused
		if err := e.trustsImported(ctx, h, facts); err != nil {
			return err
		}
	}
	imported := facts.Imported
	if facts.Doubt != nil {
		imported = &heads.Imported{Lost: true}
	}
	change, err := e.worksIn(ctx, w.Cwd, imported)
	if err != nil {
		return err
	}
	if change.Workspace, err = e.workspaceIn(ctx, h, change.Workspace, w.KeepFiles); err != nil {
		return err
	}
	h.root, h.workspace = change.Workspace.Root, change.Workspace
	if err := e.Heads.SetFacts(ctx, h.id, change); err != nil {
		return err
	}
	return e.trustsImported(ctx, h, facts)
}

// asItsParent lets a child from elsewhere work where a person lets its parent work.
func (e *Engine) asItsParent(ctx context.Context, id string, facts heads.Facts) (heads.Facts, error) {
	if facts.Parent == nil || facts.Imported == nil || !facts.Foreign() {
		return facts, nil
	}
	above, err := e.Heads.Facts(ctx, facts.Parent.Thread)
	if err != nil {
		return facts, err
	}
	if above.Imported == nil || above.Foreign() || above.Workspace == nil {
		return facts, nil
	}
	confirmed := *facts.Imported
	confirmed.Confirmed = true
	change := heads.Facts{Imported: &confirmed, Workspace: above.Workspace}
	if own, err := e.ownTree(ctx, id, above.Workspace); err != nil {
		return facts, err
	} else if own != nil {
		change.Workspace = own
	}
	facts.Imported, facts.Workspace = change.Imported, change.Workspace
	return facts, e.Heads.SetFacts(ctx, id, change)
}

// worksIn is what is known of a thread once a person has said where it works.
func (e *Engine) worksIn(ctx context.Context, dir string, imported *heads.Imported) (heads.Facts, error) {
	root, err := e.chosen(ctx, dir)
	if err != nil {
		return heads.Facts{}, err
	}
	facts := heads.Facts{Workspace: &heads.Workspace{Mode: workspace.AsItIs, Root: root}}
	if imported != nil {
		confirmed := *imported
		confirmed.Confirmed = true
		facts.Imported = &confirmed
	}
	return facts, nil
}

// mustSayWhere is the refusal of a thread from elsewhere, with what a person must
// know to decide.
func (e *Engine) mustSayWhere(ctx context.Context, h *lockedThread, facts heads.Facts, action Action) error {
	workflow, dir := "unknown", "unknown"
	if t, err := thread.Open(ctx, e.Store, h.head); err == nil {
		dir = place.Shown(t.Start.Cwd)
		if w, err := t.Workflow(ctx); err == nil {
			workflow = fmt.Sprintf("%s %s", place.Shown(w.Name), t.Start.Workflow)
		}
	}
	err := fault.New(protocol.CodeUsage, "thread %s %s; its workflow is %s; where it was made it worked in %s. Say where it may work here",
		h.id, e.whence(facts), workflow, dir)
	again := "step " + h.id
	switch action {
	case DoStep:
	case DoAnswer: // takes what it is told from other flags
		again = "answer " + h.id
	default:
		again = string(action) + " " + h.id + " -p '…'"
	}
	return fault.Hinted(err, "uwf thread read "+h.id+" shows what it is about",
		"uwf thread "+again+" --cwd "+plaintext.Word(e.Env.Dir)+" lets it work here, now and later")
}

// whence says how it is known that a thread is, or may be, from elsewhere.
func (e *Engine) whence(facts heads.Facts) string {
	imported := facts.Imported
	switch {
	case facts.Doubt != nil:
		return fmt.Sprintf("may come from elsewhere: %v (uwf cas fsck)", facts.Doubt)
	case imported.From == "" && imported.Lost:
		return "may come from elsewhere: what facts.jsonl said of it was damaged or lost"
	case imported.From == "":
		return "comes from elsewhere: no thread of this home has made its chain"
	}
	at := time.UnixMilli(imported.AtMs).In(e.Env.Now().Location()).Format(time.DateOnly)
	return fmt.Sprintf("comes from elsewhere: it was imported from %s on %s", place.Shown(imported.From), at)
}

// Settled refuses a thread that comes from elsewhere and whose directory nobody has
// said. Errors are *protocol.Error.
func (e *Engine) Settled(ctx context.Context, id string) error {
	head, err := e.Head(ctx, id)
	if err != nil {
		return err
	}
	if err := e.settle(ctx, &lockedThread{id: id, head: head}, Work{}); err != nil {
		return fault.Of(err)
	}
	return nil
}

// at is the position of a thread that is held, where it works here.
func (e *Engine) at(ctx context.Context, h *lockedThread) (*status.Position, error) {
	return e.atNode(ctx, h, h.head)
}

// atNode is where a thread that is held stands, or stood, at a node of its chain.
func (e *Engine) atNode(ctx context.Context, h *lockedThread, node protocol.Hash) (*status.Position, error) {
	p, err := e.Position(ctx, h.id, node)
	if err != nil {
		return p, err
	}
	p.Root = h.root
	if p.State.Last != nil {
		p.State.Last.Location = p.Here(p.State.Last.Location)
	}
	return p, nil
}

// inherits is what is known of a fork from a node: if that is of a thread from
// elsewhere, or of none of this home, the fork is from there, too. cwd is where a
// person lets it work, "" if nothing was said.
func (e *Engine) inherits(ctx context.Context, t *thread.Thread, node protocol.Hash, cwd string) (heads.Facts, error) {
	origin, known, err := e.origin(ctx, t.StartHash)
	if err != nil {
		return heads.Facts{}, err
	}
	var facts heads.Facts
	imported := known.Imported
	switch {
	case origin == "":
		imported = &heads.Imported{AtMs: e.Env.Now().UnixMilli()}
	case known.Doubt != nil:
		imported = &heads.Imported{Lost: true}
	}
	if imported != nil {
		inherited := *imported
		inherited.Inherited, inherited.Lost = true, false // where the fork was made is known
		facts.Imported, facts.Workspace = &inherited, known.Workspace
	}
	if cwd != "" {
		if facts, err = e.worksIn(ctx, cwd, facts.Imported); err != nil {
			return facts, err
		}
	}
	facts.Fork = &heads.Fork{Thread: origin, Step: node} // it counts what it costs from here
	if own := known.Limits; own != nil {
		facts.Limits = budget.Said(protocol.Limits{MaxCostUSD: own.MaxCostUSD, MaxTokens: own.MaxTokens, MaxTimeMs: own.MaxTimeMs})
	}
	return facts, nil
}

// origin finds the thread of this home that has a start; "": none has it. If there
// are several, it is one from elsewhere before our own, an imported one before its
// forks, and one whose directory nobody has said before the others.
func (e *Engine) origin(ctx context.Context, start protocol.Hash) (id string, known heads.Facts, err error) {
	all, damaged := e.Heads.AllFacts(ctx)
	if damaged != nil && all == nil {
		return "", heads.Facts{}, damaged
	}
	standings, _ := heads.Standings(ctx, e.Heads) // of a thread that cannot be read no fork is made
	// The most foreign first, then the newest: a fork is mostly of one of the last.
	ids := slices.SortedFunc(maps.Keys(standings), func(a, b string) int {
		return cmp.Or(originRank(all[b])-originRank(all[a]), threadid.Compare(b, a))
	})
	for _, other := range ids {
		t, err := thread.Open(ctx, e.Store, standings[other].Head)
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
