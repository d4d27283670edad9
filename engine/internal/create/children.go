package create

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// Children makes the children of the next role of a thread that do not exist yet, in one change of
// the heads.
func (m Maker) Children(ctx context.Context, parent workspace.Thread, pos *status.Position) error {
	if err := Runnable(pos.Workflow); err != nil {
		return err
	}
	dir, err := place.Chooser{Env: m.Env, Dirs: m.Dirs, Config: m.Config}.Workplace(ctx, pos.Next.Role, pos.Dir(),
		pos.Next.Location)
	if err != nil {
		return err
	}
	var trees *workspace.ChildTrees
	if role := pos.Next.Role; pos.Workflow.Roles[role].Workspace == workspace.InWorktree {
		if trees, err = m.Files.ChildTrees(ctx, parent, role, pos.Dir(), dir); err != nil {
			return err
		}
	}
	release, err := m.HoldStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	finished, err := m.finished(ctx, pos)
	if err != nil {
		return err
	}
	b := m.Batch()
	var fresh []heads.New
	var over []heads.Ended
	for _, k := range pos.Kids {
		if k.Head != "" {
			continue
		}
		its, here := trees.Of(k.ID)
		start, err := m.startOf(ctx, b, pos, k, dir, its)
		if err != nil {
			return err
		}
		facts := heads.Facts{Workspace: here, Parent: &heads.Parent{
			Thread: pos.ID, Head: parent.Head, Role: pos.Next.Role, Key: k.Key, Attempt: pos.Place().Attempt(pos.Facts, k.Key),
		}}
		if parent.Facts.Imported != nil { // the children of an imported thread count as imported
			inherited := *parent.Facts.Imported
			inherited.Inherited = true
			facts.Imported = &inherited
		}
		at := start.Hash
		if head := finished[k.Key]; children.SameTask(ctx, m.Nodes(), head, start.Value) {
			at = head
			over = append(over, heads.Ended{Thread: k.ID, Workflow: start.Value.Workflow, Head: head,
				Status: protocol.StatusCompleted, CompletedAt: m.Env.Now().UnixMilli()})
		}
		fresh = append(fresh, heads.New{Head: heads.Head{Thread: k.ID, Hash: at}, Facts: facts})
	}
	if err := b.Commit(ctx); err != nil {
		return fmt.Errorf("start the children of role %q: %w", pos.Next.Role, err)
	}
	if err := m.Heads.AddAll(ctx, fresh); err != nil {
		return fmt.Errorf("start the children of role %q: %w", pos.Next.Role, err)
	}
	for _, ended := range over { // if killed before this, such a child's next step finds its end
		if err := m.Heads.Archive(ctx, ended); err != nil {
			return err
		}
	}
	return nil
}

// finished are the heads of children that have already answered what the position asks:
// children of the thread that it was forked from, and of the last step if its role is asked
// again, except those that a person wants played again.
func (m Maker) finished(ctx context.Context, pos *status.Position) (all map[string]protocol.Hash, err error) {
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
	kids, err := m.Kids(ctx, &source)
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
func (m Maker) startOf(ctx context.Context, b *cas.Batch, pos *status.Position, k children.Kid, dir string,
	files *protocol.Workspace) (firstNode, error) {
	var none firstNode
	w, hash := pos.Workflow, k.Workflow
	var err error
	if hash == "" {
		w = moderator.RoleWorkflow(w, k.Role)
		hash, err = b.Add(ctx, w)
	} else {
		w, err = m.Workflow(ctx, hash)
	}
	if err != nil {
		return none, err
	}
	if err := Runnable(w); err != nil {
		return none, err
	}
	inputs, err := m.Inputs(ctx, w, k.Inputs)
	if err != nil {
		var bad *protocol.Error
		if errors.As(err, &bad) {
			err = &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("child %s of role %q: %s", k.Key,
				pos.Next.Role, bad.Message), Err: err}
		}
		return none, err
	}
	start := protocol.Start{
		Workflow: hash, Prompt: k.Prompt, Cwd: dir, Inputs: inputs, Workspace: files,
		Child: &protocol.Child{Of: pos.Thread.Head, Role: pos.Next.Role, Key: k.Key,
			Attempt: pos.Place().Attempt(pos.Facts, k.Key)},
	}
	h, err := b.Add(ctx, start)
	return firstNode{h, start}, err
}
