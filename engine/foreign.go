package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/origin"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/trust"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// A thread that was imported brings prompts, a workflow and a directory that its author chose.
// None of it runs here until a person has said where. The answer is kept in the thread's facts
// (package heads), because its start cannot change. Its forks are as foreign as the thread.

// settle finds out where the thread works, or keeps the directory that a person names now.
func (e *Engine) settle(ctx context.Context, h *lockedThread, w Work) error {
	facts, err := e.Heads.Facts(ctx, h.id)
	if err != nil {
		return err
	}
	if facts, err = e.asItsParent(ctx, h.id, facts); err != nil {
		return err
	}
	h.facts = facts
	h.barrier, h.barred = decide.Open, nil
	if w.Cwd == "" {
		if facts.Foreign() {
			h.barrier, h.barred = decide.NoCwd, e.Origins().MustSayWhere(ctx, h.id, h.head, facts, w.Do.again(h.id))
			return nil
		}
		return e.trusted(ctx, h, facts)
	}
	if e.Files().LastKept(ctx, h.head) != nil { // make no worktree for a thread that is refused
		if err := e.trusted(ctx, h, facts); err != nil || h.barrier != decide.Open && w.Do != DoAnswer {
			return err
		}
	}
	imported := facts.Imported
	if facts.Doubt != nil {
		imported = &heads.Imported{Lost: true}
	}
	change, err := e.maker().WorksIn(ctx, w.Cwd, imported)
	if err != nil {
		return err
	}
	if change.Workspace, h.elsewhere, err = e.Files().In(ctx, h.files(), change.Workspace, w.KeepFiles); err != nil {
		return err
	}
	h.facts.Workspace = change.Workspace
	if h.elsewhere.Refused == nil {
		if err := e.Heads.SetFacts(ctx, h.id, change); err != nil {
			return err
		}
	}
	if made := change.Workspace.Mode == workspace.InWorktree; made && (facts.Workspace == nil || facts.Workspace.Mode != workspace.InWorktree) {
		if err := e.Files().Made(h.id); err != nil {
			return err
		}
	}
	return e.trusted(ctx, h, facts)
}

// trusted finds out whether the workflow of a thread from elsewhere has commands that nobody has
// confirmed.
func (e *Engine) trusted(ctx context.Context, h *lockedThread, facts heads.Facts) error {
	err := e.Origins().Imported(ctx, h.id, h.head, facts)
	if errors.As(err, new(*UntrustedError)) {
		h.barrier, h.barred = decide.Untrusted, err
		return nil
	}
	return err
}

// asItsParent lets an imported child work where a person has let its parent work.
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
	if own, err := e.Files().OwnTree(ctx, id, above.Workspace); err != nil {
		return facts, err
	} else if own != nil {
		change.Workspace = own
	}
	facts.Imported, facts.Workspace = change.Imported, change.Workspace
	return facts, e.Heads.SetFacts(ctx, id, change)
}

// again is what to type after "uwf thread" to repeat the action.
func (a Action) again(id string) string {
	switch a {
	case DoStep, DoUndo, DoRedo, DoRetry:
		return "step " + id
	case DoAnswer: // takes its input from other flags
		return "answer " + id
	case DoPoke:
		return "retry " + id + " -p '…'"
	}
	return string(a) + " " + id + " -p '…'"
}

// Settled refuses a thread from elsewhere if nobody has said which directory it works in.
// Errors are *protocol.Error.
func (e *Engine) Settled(ctx context.Context, id string) error {
	head, err := e.Head(ctx, id)
	if err != nil {
		return err
	}
	h := &lockedThread{id: id, head: head}
	return fault.OrNil(cmp.Or(e.settle(ctx, h, Work{}), h.barred))
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
	if w := h.facts.Workspace; w != nil {
		p.Root = w.Root
	}
	if p.State.Last != nil {
		p.State.Last.Location = p.Here(p.State.Last.Location)
	}
	return p, nil
}

// UntrustedError means that a workflow with commands has not been confirmed.
type UntrustedError = trust.UntrustedError

// Origins decides what of elsewhere may run here.
func (e *Engine) Origins() origin.Judge { return origin.Judge{Reader: &e.Reader} }
