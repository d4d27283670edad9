// Package create makes threads: new ones of a workflow, and forks of others. What is durable
// when is its promise: a head names a thread only once the thread's nodes and files are there.
package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/engine/internal/verify"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Maker makes threads. Build it as a literal.
type Maker struct {
	*status.Reader
	Files worktree.Keeper
	// Drop removes the worktree of a thread that could not be made.
	Drop func(ctx context.Context, id string, w *heads.Workspace) error
}

func (m Maker) origins() trust.Judge { return trust.Judge{Reader: m.Reader} }

// chosen is the directory that a person wants a thread to work in, without symbolic links.
func (m Maker) chosen(ctx context.Context, dir string) (string, error) {
	dir, err := cwd.Real(dir)
	if err != nil {
		return "", err
	}
	return cwd.Chooser{Env: m.Env, Dirs: m.Dirs, Config: m.Config}.Workplace(ctx, "", dir, "")
}

// WorksIn is what is known of a thread once a person has said where it works.
func (m Maker) WorksIn(ctx context.Context, dir string, imported *heads.Imported) (heads.Facts, error) {
	root, err := m.chosen(ctx, dir)
	if err != nil {
		return heads.Facts{}, err
	}
	facts := heads.Facts{Workspace: &heads.Workspace{Mode: worktree.ModeNone, Root: root}}
	if imported != nil {
		confirmed := *imported
		confirmed.Confirmed = true
		facts.Imported = &confirmed
	}
	return facts, nil
}

// StartOptions are options of [Maker.Start]. The zero value works.
type StartOptions struct {
	Limits    protocol.Limits  // of the run; they take precedence over the workflow's
	Workspace worktree.Options // how its files are kept
	// Check may refuse what a catalog starts, as [engine.Engine.CheckFirst] does, or complete it; nil:
	// nothing is checked.
	Check func(*protocol.Start) error
}

// Start makes a thread of a stored workflow. Its directory is absolute and exists; the
// thread keeps the resolved path, so that a link put there later cannot redirect it. Inputs
// that are not given have their defaults. The start node is durable before a head names it.
// Errors are *protocol.Error.
func (m Maker) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	defer fault.Coded(&err)
	if err := m.MayWrite(); err != nil {
		return "", err
	}
	if !filepath.IsAbs(s.Cwd) {
		return "", fault.New(protocol.CodeUsage, "the directory of a thread must be an absolute path, got %q", s.Cwd)
	}
	if o.Limits.Negative() {
		return "", fault.New(protocol.CodeUsage, "a limit of a thread must be above 0")
	}
	if s.Cwd, err = m.chosen(ctx, s.Cwd); err != nil {
		return "", fmt.Errorf("start a thread: %w", err)
	}
	release, err := m.LockStore(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	w, err := cas.Read[protocol.Workflow](ctx, m.Store, s.Workflow)
	if err != nil {
		return "", WrongNode(s.Workflow, "workflow", err)
	}
	if err := Runnable(w); err != nil {
		return "", err
	}
	if err := m.origins().Stored(ctx, s.Workflow, w); err != nil {
		return "", err
	}
	if err := m.origins().MustGrant(ctx, s.Workflow, w, ""); err != nil {
		return "", err
	}
	if s.Inputs, err = m.Inputs(ctx, w, s.Inputs); err != nil {
		return "", err
	}
	id, done, err := m.newThread(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	workspace, err := m.Files.New(ctx, o.Workspace, id, w.Name, s.Cwd)
	if err != nil {
		return "", err
	}
	m.Files.WarnShared(ctx, workspace)
	b := m.Batch()
	start, err := b.Add(ctx, s)
	if err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", err
	}
	return m.addThread(ctx, id, start, heads.Facts{Limits: budget.Said(o.Limits), Workspace: workspace})
}

// addThread makes a thread with a head. If that fails, it removes the worktree that was made
// for the thread.
func (m Maker) addThread(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (string, error) {
	if err := m.Heads.Add(ctx, id, head, facts); err != nil {
		if w := facts.Workspace; w != nil && w.Mode == worktree.InWorktree {
			err = errors.Join(err, m.Drop(context.WithoutCancel(ctx), id, w))
		}
		return "", err
	}
	if w := facts.Workspace; w != nil && w.Mode == worktree.InWorktree {
		if err := m.Files.Created(id); err != nil {
			return id, err
		}
	}
	return id, nil
}

// newThread is the id of a thread that is about to be made, and is held until that is done.
func (m Maker) newThread(ctx context.Context) (id string, done func(), err error) {
	if id, err = threadid.New(m.Env.Now(), m.Env.Rand); err != nil {
		return "", nil, err
	}
	held, err := m.Files.LockCreation(ctx, id)
	return id, func() { _ = held.RemoveAndUnlock() }, err
}

// WrongNode is the error for a given hash that does not lead to what it should.
func WrongNode(h protocol.Hash, what string, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.As(err, &kind):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "node " + string(h) + " is not a " + what, Err: err}
	case errors.Is(err, cas.ErrNotFound):
		return &protocol.Error{Code: protocol.CodeNotFound, Message: "there is no node " + string(h), Err: err}
	}
	return fault.Of(err)
}

// Children makes the children of the next role of a thread that do not exist yet, in one change of
// the heads.
func (m Maker) Children(ctx context.Context, parent worktree.Thread, pos *status.Position) error {
	if err := Runnable(pos.Workflow); err != nil {
		return err
	}
	dir, err := cwd.Chooser{Env: m.Env, Dirs: m.Dirs, Config: m.Config}.Workplace(ctx, pos.Next.Role, pos.Dir(),
		pos.Next.Location)
	if err != nil {
		return err
	}
	var trees *worktree.ChildTrees
	if role := pos.Next.Role; pos.Workflow.Roles[role].Workspace == worktree.InWorktree {
		if trees, err = m.Files.ChildTrees(ctx, parent, role, pos.Dir(), dir); err != nil {
			return err
		}
	}
	release, err := m.LockStore(ctx)
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
	for _, k := range pos.Children {
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
	kids, err := m.Reader.Children(ctx, &source)
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
func (m Maker) startOf(ctx context.Context, b *cas.Batch, pos *status.Position, k children.Child, dir string,
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

// ForkOptions are options of [Maker.Fork]. The zero value works.
type ForkOptions struct {
	Thread   string // the thread in which the node was found; "": one of this home with the same start
	Cwd      string // where the fork works; "": where the other one does
	Files    string // see [worktree.Fork]
	Before   protocol.Hash
	Detached bool
}

// Fork makes a thread whose head is an existing start or step node. It shares
// everything with the thread that the node comes from. Errors are
// *protocol.Error.
// A fork of a thread from elsewhere counts as from elsewhere, too.
func (m Maker) Fork(ctx context.Context, node protocol.Hash, o ForkOptions) (_ string, err error) {
	defer fault.Coded(&err)
	release, err := m.LockStore(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	head, err := m.Store.Get(ctx, node)
	if err != nil {
		return "", WrongNode(node, "step", err)
	}
	t, err := thread.Open(ctx, m.Store, node)
	var other *cas.TypeError
	if errors.As(err, &other) && other.Hash == node {
		return "", fault.New(protocol.CodeInvalid, "node %s is neither a step nor the start of a thread", node)
	}
	if err != nil {
		return "", err
	}
	nodes := []cas.Node{head}
	if t.Last != nil {
		named, err := verify.Contents(ctx, m.Store, t.Last.Step, true)
		if err != nil && !errors.As(err, &other) { // the original's agents have details of their own
			return "", err
		}
		nodes = append(nodes, named...)
	}
	// A fork may begin at the step of a failed run, which nothing durable has named until now.
	if err := m.Store.Commit(ctx, nodes...); err != nil {
		return "", err
	}
	facts, err := m.origins().Inherited(ctx, t, node)
	if err == nil && o.Cwd != "" {
		var here heads.Facts
		here, err = m.WorksIn(ctx, o.Cwd, facts.Imported)
		facts.Imported, facts.Workspace = here.Imported, here.Workspace
	}
	if err != nil {
		return "", err
	}
	if o.Thread != "" {
		facts.Fork.Thread = o.Thread
	}
	if err := m.asBefore(ctx, &facts, node); err != nil {
		return "", err
	}
	id, done, err := m.newThread(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	if of := facts.Fork.Thread; of != "" && !o.Detached {
		if err := m.Files.ForkArtifacts(ctx, of, id); err != nil {
			return "", err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, m.Files.RemoveArtifacts(id))
			}
		}()
	}
	if facts.Workspace, err = m.Files.Fork(ctx, worktree.Fork{
		Thread: id, At: t, Facts: facts, Moved: o.Cwd != "", Files: o.Files, Before: o.Before, Detached: o.Detached,
	}); err != nil {
		return "", err
	}
	return m.addThread(ctx, id, node, facts)
}

// asBefore gives a fork the agents chosen for its thread, and the counts of children's attempts at
// the same head.
func (m Maker) asBefore(ctx context.Context, fork *heads.Facts, head protocol.Hash) error {
	if fork.Fork.Thread == "" {
		return nil
	}
	known, err := m.Heads.Facts(ctx, fork.Fork.Thread)
	if err != nil {
		return err
	}
	fork.Attempts = maps.Clone(known.Attempts)
	maps.DeleteFunc(fork.Attempts, func(key string, _ int) bool { return !strings.HasPrefix(key, string(head)+"/") })
	fork.Agents, err = m.ChosenAgents(ctx, known)
	return err
}

// Inputs are those of a run of a workflow, checked and complete.
func (m Maker) Inputs(ctx context.Context, w protocol.Workflow, given map[string]any) (map[string]any, error) {
	declared, err := Declared(ctx, m.Nodes(), w)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// Declared are the inputs of a stored workflow.
func Declared(ctx context.Context, r cas.Reader, w protocol.Workflow) (map[string]inputs.Declared, error) {
	declared := map[string]inputs.Declared{}
	for name, i := range w.Inputs {
		schema, err := cas.Schema(ctx, r, i.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of input %q: %w", name, err)
		}
		declared[name] = inputs.Declared{Schema: schema, Default: i.Default, Description: i.Description}
	}
	return declared, nil
}

// InputsText is what agents are told of a thread's inputs.
func InputsText(s protocol.Start) string {
	if len(s.Inputs) == 0 {
		return "{}"
	}
	text, err := json.Marshal(s.Inputs)
	if err != nil { // it was read from a node
		return "{}"
	}
	return string(text)
}

// Runnable refuses a workflow with features that this program can store but not run: ignoring
// them would be running a different workflow.
func Runnable(w protocol.Workflow) error {
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		for _, field := range []struct {
			said bool
			name string
		}{
			{w.Roles[name].Workspace != "" && w.Roles[name].Workspace != protocol.InWorktree, "workspace"},
			{w.Roles[name].Memo, "memo"}, {len(w.Roles[name].Tools) > 0, "tools"},
		} {
			if field.said {
				return fault.New(protocol.CodeInvalid, "role %q of workflow %q has %q, which this uwf cannot do yet", name,
					w.Name, field.name)
			}
		}
	}
	return nil
}
