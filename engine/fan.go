package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
)

// startKids starts the children that do not exist yet, in one change of the heads.
func (e *Engine) startKids(ctx context.Context, h *lockedThread, pos *status.Position) error {
	if err := runnable(pos.Workflow); err != nil {
		return err
	}
	dir, err := e.Workplace(ctx, pos.Next.Role, pos.Dir(), pos.Next.Location)
	if err != nil {
		return err
	}
	var trees *workspace.ChildTrees
	if role := pos.Next.Role; pos.Workflow.Roles[role].Workspace == workspace.InWorktree {
		if trees, err = e.Files().ChildTrees(ctx, h.files(), role, pos.Dir(), dir); err != nil {
			return err
		}
	}
	release, err := e.holdStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	finished, err := e.finished(ctx, pos)
	if err != nil {
		return err
	}
	b := e.batch()
	var fresh []heads.New
	var over []heads.Ended
	for _, k := range pos.Kids {
		if k.Head != "" {
			continue
		}
		its, here := trees.Of(k.ID)
		start, err := e.startOf(ctx, b, pos, k, dir, its)
		if err != nil {
			return err
		}
		facts := heads.Facts{Workspace: here, Parent: &heads.Parent{
			Thread: pos.ID, Head: h.head, Role: pos.Next.Role, Key: k.Key, Attempt: pos.Place().Attempt(pos.Facts, k.Key),
		}}
		if h.facts.Imported != nil { // the children of an imported thread count as imported
			inherited := *h.facts.Imported
			inherited.Inherited = true
			facts.Imported = &inherited
		}
		at := start.Hash
		if head := finished[k.Key]; children.SameTask(ctx, e.Nodes(), head, start.Value) {
			at = head
			over = append(over, heads.Ended{Thread: k.ID, Workflow: start.Value.Workflow, Head: head, Status: protocol.StatusCompleted, CompletedAt: e.nowMs()})
		}
		fresh = append(fresh, heads.New{Head: heads.Head{Thread: k.ID, Hash: at}, Facts: facts})
	}
	if err := b.Commit(ctx); err != nil {
		return fmt.Errorf("start the children of role %q: %w", pos.Next.Role, err)
	}
	if err := e.Heads.AddAll(ctx, fresh); err != nil {
		return fmt.Errorf("start the children of role %q: %w", pos.Next.Role, err)
	}
	for _, ended := range over { // if killed before this, such a child's next step finds its end
		if err := e.Heads.Archive(ctx, ended); err != nil {
			return err
		}
	}
	return nil
}

// finished are the heads of children that have already answered what the position asks:
// children of the thread that it was forked from, and of the last step if its role is asked
// again, except those that a person wants played again.
func (e *Engine) finished(ctx context.Context, pos *status.Position) (all map[string]protocol.Hash, err error) {
	all = map[string]protocol.Hash{}
	defer func() {
		maps.DeleteFunc(all, func(key string, _ protocol.Hash) bool { // a person wants it played again
			return pos.Facts.Attempts[pos.Place().AttemptKey(key)] > 0
		})
	}()
	if pos.Again {
		for _, c := range pos.Thread.Last.Children {
			if c.Status == protocol.StatusCompleted {
				all[c.Key] = c.Head
			}
		}
		return all, nil
	}
	fork := pos.Facts.Fork
	if fork == nil || fork.Thread == "" || fork.Step != pos.Thread.Head {
		return all, nil
	}
	source := *pos
	source.ID = fork.Thread
	kids, err := e.Kids(ctx, &source)
	for _, k := range kids {
		if k.Ended != nil && k.Ended.Status == protocol.StatusCompleted {
			all[k.Key] = k.Ended.Head
		}
	}
	return all, err
}

// firstNode is the start of a child.
type firstNode struct {
	Hash  protocol.Hash
	Value protocol.Start
}

// startOf adds the first node of a child.
func (e *Engine) startOf(ctx context.Context, b *cas.Batch, pos *status.Position, k children.Kid, dir string, files *protocol.Workspace) (firstNode, error) {
	var none firstNode
	w, hash := pos.Workflow, k.Workflow
	var err error
	if hash == "" {
		w = moderator.RoleWorkflow(w, k.Role)
		hash, err = b.Add(ctx, w)
	} else {
		w, err = e.Workflow(ctx, hash)
	}
	if err != nil {
		return none, err
	}
	if err := runnable(w); err != nil {
		return none, err
	}
	inputs, err := e.inputs(ctx, w, k.Inputs)
	if err != nil {
		var bad *protocol.Error
		if errors.As(err, &bad) {
			err = &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("child %s of role %q: %s", k.Key, pos.Next.Role, bad.Message), Err: err}
		}
		return none, err
	}
	start := protocol.Start{
		Workflow: hash, Prompt: k.Prompt, Cwd: dir, Inputs: inputs, Workspace: files,
		Child: &protocol.Child{Of: pos.Thread.Head, Role: pos.Next.Role, Key: k.Key, Attempt: pos.Place().Attempt(pos.Facts, k.Key)},
	}
	h, err := b.Add(ctx, start)
	return firstNode{h, start}, err
}

// joinKids makes the step of the results of all children.
func (a *attempt) joinKids(ctx context.Context) (protocol.Result, error) {
	var none protocol.Result
	// From here on no child begins, since our run is open; one that has begun is seen here.
	for _, k := range a.pos.Kids {
		if k.Ended.Status != protocol.StatusCancelled && (a.Locker().Held(ctx, k.ID) || a.IsOpen(k.ID, k.Ended.Head)) {
			return none, fault.Hinted(fault.New(protocol.CodeLocked, "child %s of role %q is being played again", k.Key, a.task.role), "uwf thread wait "+a.locked.id)
		}
	}
	b := a.batch()
	role, err := a.judge(ctx, b)
	if err != nil {
		return none, err
	}
	results := make([]moderator.Result, len(a.pos.Kids))
	made := own{agent: protocol.JoinAgent, by: protocol.ByValue, children: make([]protocol.ChildEnded, len(a.pos.Kids))}
	var all protocol.Totals
	for i, k := range a.pos.Kids {
		if results[i], err = k.Result(ctx, a.Nodes()); err != nil {
			return none, fmt.Errorf("child %s: %w", k.Key, err)
		}
		sum, err := a.Cost(ctx, k.ID, k.Ended.Head)
		if err != nil {
			return none, fmt.Errorf("child %s: %w", k.Key, err)
		}
		all.Spend(sum.Usage)
		made.children[i] = protocol.ChildEnded{Key: k.Key, Head: k.Ended.Head, Status: k.Ended.Status, Usage: budget.CostOf(sum)}
	}
	made.usage = all.Usage
	joined := workspace.Joined{Keeper: a.Files(), Thread: a.locked.id, Chain: a.pos.Thread, Role: a.task.role, Kids: a.pos.Kids}
	if a.pos.Workflow.Roles[a.task.role].Workspace == workspace.InWorktree {
		if err := joined.Find(ctx, results); err != nil {
			return none, err
		}
	}
	var merged protocol.Tree
	var conflicts []string
	if a.pos.Workflow.Roles[a.task.role].Merge {
		if merged, conflicts, err = joined.Merge(ctx, a.kept); err != nil {
			return none, err
		}
	}
	value, err := a.joinedValue(ctx, role, results, conflicts)
	if err != nil {
		return none, err
	}
	made.output, err = extract.Value(ctx, value, role)
	var unfit *extract.InvalidError
	if errors.As(err, &unfit) {
		problems := &UnfitError{Problems: unfit.Problems}
		return none, a.unjoined(fmt.Errorf("the join of role %q does not fit its schema: %s%w", a.task.role, unfit.Reason, problems))
	}
	if err != nil {
		return none, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return none, err
	}
	made.answer = string(text)
	if merged != "" && merged != a.kept.Spec.Tree {
		i := rundir.Intent{Kind: rundir.Prepared, HeadFrom: a.locked.head, TreeFrom: a.kept.Spec.Tree, TreeTo: merged}
		if err := a.Files().Claim(a.kept, a.locked.id); err != nil {
			return none, err
		}
		if err := a.dir.SetIntent(i); err != nil {
			return none, err
		}
		if err := a.Files().Lay(ctx, a.kept, merged); err != nil {
			return none, fault.Hinted(fault.Of(err), "to retry: "+a.again())
		}
	}
	return a.submit(ctx, b, made)
}

// joinedValue is what the results of all children are together.
func (a *attempt) joinedValue(ctx context.Context, role extract.Role, results []moderator.Result, conflicts []string) (any, error) {
	if len(conflicts) > 0 {
		return moderator.Conflicted(conflicts), nil
	}
	state, err := a.joinState(ctx)
	if err != nil {
		return nil, err
	}
	value, err := moderator.Join(ctx, state, a.task.role, results, !children.IsJoinSchema(role.Schema))
	if err != nil {
		return nil, a.unjoined(err)
	}
	return value, nil
}

// joinState is the state that the children were made from, over which their results are
// joined.
func (a *attempt) joinState(ctx context.Context) (moderator.State, error) {
	if !a.pos.Again {
		return a.pos.State, nil
	}
	return a.StateBefore(ctx, a.pos)
}

func (a *attempt) unjoined(err error) error {
	return fault.Hinted(&protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err},
		a.again()+" joins again: no child is run anew", "uwf thread show "+a.locked.id)
}
