package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
)

// fan is one step of a thread whose next role has children: it starts those that do not exist
// yet, or joins their results once all have ended. Otherwise the thread itself has nothing to
// do.
func (e *Engine) fan(ctx context.Context, h *lockedThread, pos *status.Position, last rundir.Record, o StepOptions) (protocol.StepOutput, error) {
	if pos.Kids.Unstarted() {
		if err := e.startKids(ctx, h, pos); err != nil {
			return protocol.StepOutput{}, err
		}
		var err error
		if pos.Kids, err = e.Kids(ctx, pos); err != nil {
			return protocol.StepOutput{}, err
		}
		out := pos.Output()
		if out.Status == protocol.StatusIdle && len(pos.Kids) > 0 && !pos.Kids.AllEnded() {
			out.Status = protocol.StatusWaitingForChildren
		}
		return out, nil
	}
	if !pos.Kids.AllEnded() {
		return pos.Output(), nil
	}
	return e.join(ctx, h, pos, last, o)
}

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

// join makes the step of a role whose children have ended. If the joined result does not
// satisfy the role's schema, the children stay, and the join can be tried again.
func (e *Engine) join(ctx context.Context, h *lockedThread, pos *status.Position, last rundir.Record, o StepOptions) (out protocol.StepOutput, err error) {
	t, err := e.task(ctx, pos, pos.Next)
	if err != nil {
		return out, err
	}
	if pos.Lifted {
		t.limitBase = pos.Thread.Len()
	}
	a := e.newAttempt(h, pos, t)
	a.more, a.cmd = o.more, casting.Command{Name: protocol.JoinAgent, Written: []string{}}
	if !o.Fresh {
		if out, adopted, err := a.takeOver(ctx, last); adopted || err != nil {
			return out, err
		}
	}
	if a.task.cwd, err = a.workplace(ctx); err != nil {
		return out, a.unable(err)
	}
	if err := a.keepFiles(ctx); err != nil {
		return out, err
	}
	defer a.kept.Release()
	return a.withoutProcess(ctx, func() (protocol.Result, error) { return a.joinKids(ctx) })
}

// joinKids makes the step of the results of all children.
func (a *attempt) joinKids(ctx context.Context) (protocol.Result, error) {
	var none protocol.Result
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
	if merged != "" {
		if err := a.Files().Lay(ctx, a.kept, a.locked.id, merged); err != nil {
			return none, err
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

// Again has one or all of the children of the next role played again, and forgets their
// answers. Errors are *protocol.Error.
func (e *Engine) Again(ctx context.Context, parent, key string) error {
	h, err := e.lock(ctx, parent)
	if err != nil {
		return fault.Of(err)
	}
	defer h.release()
	if h.ended != nil {
		return hasEnded(h)
	}
	if err := e.settle(ctx, h, Work{}); err != nil {
		return fault.Of(err)
	}
	pos, err := e.reading(e.Knowing(h.id, &h.facts)).at(ctx, h)
	if err != nil {
		return fault.Of(err)
	}
	i := slices.IndexFunc(pos.Kids, func(k children.Kid) bool { return k.Key == key })
	if i < 0 {
		return fault.Hinted(fault.New(protocol.CodeFailed, "thread %s has no child %q that is still to be joined", parent, key), "uwf thread show "+parent)
	}
	k := pos.Kids[i]
	if k.Head != "" && k.Ended == nil {
		if err := e.Kill(ctx, k.ID); err != nil {
			return err
		}
	}
	return fault.OrNil(e.ask(ctx, h, pos.Place().AttemptKey(key)))
}

// ask raises an attempt's number.
func (e *Engine) ask(ctx context.Context, h *lockedThread, key string) error {
	attempts := maps.Clone(h.facts.Attempts)
	if attempts == nil {
		attempts = map[string]int{}
	}
	attempts[key]++
	if err := e.Heads.SetFacts(ctx, h.id, heads.Facts{Attempts: attempts}); err != nil {
		return err
	}
	h.facts.Attempts = attempts
	return nil
}
