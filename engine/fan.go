package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
)

// joinKids makes the step of the results of all children.
func (a *attempt) joinKids(ctx context.Context) (protocol.Result, error) {
	var none protocol.Result
	if err := a.kidsAtRest(ctx); err != nil {
		return none, err
	}
	b := a.Batch()
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
		made.children[i] = protocol.ChildEnded{Key: k.Key, Head: k.Ended.Head, Status: k.Ended.Status,
			Usage: budget.CostOf(sum)}
	}
	made.usage = all.Usage
	joined := workspace.Joined{Keeper: a.Files(), Thread: a.locked.id, Chain: a.pos.Thread, Role: a.task.role,
		Kids: a.pos.Kids}
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
		return none, a.unjoined(fmt.Errorf("the join of role %q does not fit its schema: %s%w", a.task.role, unfit.Reason,
			problems))
	}
	if err != nil {
		return none, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return none, err
	}
	made.answer = string(text)
	if err := a.lay(ctx, merged); err != nil {
		return none, err
	}
	return a.submit(ctx, b, made)
}

// kidsAtRest refuses a join of children that are played again. Our run is open, so that no other
// one begins; one that has begun is seen here.
func (a *attempt) kidsAtRest(ctx context.Context) error {
	for _, k := range a.pos.Kids {
		if k.Ended.Status != protocol.StatusCancelled && (a.Locker().Held(ctx, k.ID) || a.IsOpen(k.ID, k.Ended.Head)) {
			return fault.Hinted(fault.New(protocol.CodeLocked, "child %s of role %q is being played again", k.Key,
				a.task.role), "uwf thread wait "+a.locked.id)
		}
	}
	return nil
}

// lay replaces the files of the thread by those that the children have made together; "": nothing.
func (a *attempt) lay(ctx context.Context, merged protocol.Tree) error {
	if merged == "" || merged == a.kept.Spec.Tree {
		return nil
	}
	i := rundir.Intent{Kind: rundir.Prepared, HeadFrom: a.locked.head, TreeFrom: a.kept.Spec.Tree, TreeTo: merged}
	if err := a.Files().Claim(a.kept, a.locked.id); err != nil {
		return err
	}
	if err := a.dir.SetIntent(i); err != nil {
		return err
	}
	if err := a.Files().Lay(ctx, a.kept, merged); err != nil {
		return fault.Hinted(fault.Of(err), "to retry: "+a.again())
	}
	return nil
}

// joinedValue is what the results of all children are together.
func (a *attempt) joinedValue(ctx context.Context, role extract.Role, results []moderator.Result,
	conflicts []string) (any, error) {
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
