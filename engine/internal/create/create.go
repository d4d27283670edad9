// Package create creates threads: new ones of a workflow, and forks. A head refers to a thread only after the
// thread's nodes and files are durable.
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

// Maker creates threads. Create it as a literal.
type Maker struct {
	*status.Reader
	Files worktree.Keeper
	// Drop removes the worktree of a thread whose creation failed.
	Drop func(ctx context.Context, id string, w *heads.Workspace) error
}

func (m Maker) origins() trust.Judge { return trust.Judge{Reader: m.Reader} }

// chosen returns the directory that a user has chosen for a thread, with symbolic links resolved.
func (m Maker) chosen(ctx context.Context, dir string) (string, error) {
	dir, err := cwd.Real(dir)
	if err != nil {
		return "", err
	}
	return cwd.Chooser{Env: m.Env, Dirs: m.Dirs, Config: m.Config}.Workplace(ctx, "", dir, "")
}

// WorksIn returns the facts of a thread after a user has chosen its directory.
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

// StartOptions are the options of [Maker.Start]. The zero value is valid.
type StartOptions struct {
	Limits    protocol.Limits  // limits of the run, which take precedence over the workflow's
	Workspace worktree.Options // how its files are kept
	// Check, if not nil, can refuse what a catalog starts, as [engine.Engine.CheckFirst] does, or complete
	// it.
	Check func(*protocol.Start) error
}

// Start creates a thread of a stored workflow. Its directory must be absolute and exist. The thread stores
// the resolved path, so that a symbolic link created later cannot redirect it. Missing inputs get their
// defaults. The start node is durable before a head refers to it. Errors are *protocol.Error.
func (m Maker) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	defer fault.Coded(&err)
	if err := m.MayWrite(); err != nil {
		return "", err
	}
	if !filepath.IsAbs(s.Cwd) {
		return "", fault.New(protocol.CodeUsage, "thread directory %q is not an absolute path", s.Cwd)
	}
	if o.Limits.Negative() {
		return "", fault.New(protocol.CodeUsage, "thread limits must be above 0")
	}
	if s.Cwd, err = m.chosen(ctx, s.Cwd); err != nil {
		return "", fmt.Errorf("start thread: %w", err)
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
	b := m.Batch()
	start, err := b.Add(ctx, s)
	if err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", err
	}
	return m.addThread(ctx, id, start, heads.Facts{Limits: budget.ToFacts(o.Limits), Workspace: workspace})
}

// addThread creates a thread with a head. If that fails, it removes the worktree that was created for it.
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

// newThread returns the ID of a thread to create. It holds the creation lock until done is called.
func (m Maker) newThread(ctx context.Context) (id string, done func(), err error) {
	if id, err = threadid.New(m.Env.Now(), m.Env.Rand); err != nil {
		return "", nil, err
	}
	held, err := m.Files.LockCreation(ctx, id)
	return id, func() { _ = held.RemoveAndUnlock() }, err
}

// WrongNode returns the error for a hash given by the user that doesn't refer to the right kind of node.
func WrongNode(h protocol.Hash, what string, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.As(err, &kind):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: "node " + string(h) + " is not a " + what, Err: err}
	case errors.Is(err, cas.ErrNotFound):
		return &protocol.Error{Code: protocol.CodeNotFound, Message: "node not found: " + string(h), Err: err}
	}
	return fault.Of(err)
}

// Children creates the missing children of a thread's next role, in one change of the heads.
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
		start, at, err := m.startOf(ctx, b, pos, k, dir, its)
		if err != nil {
			return err
		}
		facts := heads.Facts{Workspace: here, Parent: &heads.Parent{
			Thread: pos.ID, Head: parent.Head, Role: pos.Next.Role, Key: k.Key, Attempt: pos.Place().Attempt(pos.Facts, k.Key),
		}}
		if parent.Facts.Imported != nil { // children of an imported thread count as imported
			inherited := *parent.Facts.Imported
			inherited.Inherited = true
			facts.Imported = &inherited
		}
		if head := finished[k.Key]; children.SameTask(ctx, m.Nodes(), head, start) {
			at = head
			over = append(over, heads.Ended{Thread: k.ID, Workflow: start.Workflow, Head: head,
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
	for _, ended := range over { // if interrupted here, the child's next step archives it
		if err := m.Heads.Archive(ctx, ended); err != nil {
			return err
		}
	}
	return nil
}

// finished returns the heads of children that have already answered the position's question, by key. These
// are children of the thread that it was forked from, and children of the last step if its role is asked
// again, except those that a user has retried.
func (m Maker) finished(ctx context.Context, pos *status.Position) (all map[string]protocol.Hash, err error) {
	all = map[string]protocol.Hash{}
	defer func() {
		maps.DeleteFunc(all, func(key string, _ protocol.Hash) bool { // a user has retried it
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

// startOf adds the start node of a child to a batch.
func (m Maker) startOf(ctx context.Context, b *cas.Batch, pos *status.Position, k children.Child, dir string,
	files *protocol.Workspace) (start protocol.Start, h protocol.Hash, err error) {
	w, hash := pos.Workflow, k.Workflow
	if hash == "" {
		w = moderator.RoleWorkflow(w, k.Role)
		hash, err = b.Add(ctx, w)
	} else {
		w, err = m.Workflow(ctx, hash)
	}
	if err == nil {
		err = Runnable(w)
	}
	if err != nil {
		return start, "", err
	}
	inputs, err := m.Inputs(ctx, w, k.Inputs)
	if err != nil {
		var bad *protocol.Error
		if errors.As(err, &bad) {
			err = &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("child %s of role %q: %s", k.Key,
				pos.Next.Role, bad.Message), Err: err}
		}
		return start, "", err
	}
	start = protocol.Start{
		Workflow: hash, Prompt: k.Prompt, Cwd: dir, Inputs: inputs, Workspace: files,
		Child: &protocol.Child{Of: pos.Thread.Head, Role: pos.Next.Role, Key: k.Key,
			Attempt: pos.Place().Attempt(pos.Facts, k.Key)},
	}
	h, err = b.Add(ctx, start)
	return start, h, err
}

// ForkOptions are the options of [Maker.Fork]. The zero value is valid.
type ForkOptions struct {
	Thread   string // thread that contains the node; "" means any with the same start in this home
	Cwd      string // directory of the fork; "" means the other thread's
	Files    string // see [worktree.Fork]
	Before   protocol.Hash
	Detached bool
}

// Fork creates a thread whose head is an existing start or step node. It shares all nodes with the original
// thread. A fork of an imported thread counts as imported. Errors are *protocol.Error.
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
		return "", fault.New(protocol.CodeInvalid, "node %s is neither a step nor a thread start", node)
	}
	if err != nil {
		return "", err
	}
	nodes := []cas.Node{head}
	if t.Last != nil {
		named, err := verify.Contents(ctx, m.Store, t.Last.Step, true)
		if err != nil && !errors.As(err, &other) { // agents of the original uwf have their own kinds of details
			return "", err
		}
		nodes = append(nodes, named...)
	}
	// Commit the nodes: the step may be from a failed run, and nothing durable has referred to it yet.
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

// asBefore copies the original thread's chosen agents to a fork, and the attempt numbers of children at the
// same head.
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

// Inputs checks the inputs of a run and adds defaults.
func (m Maker) Inputs(ctx context.Context, w protocol.Workflow, given map[string]any) (map[string]any, error) {
	declared, err := Declared(ctx, m.Nodes(), w)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// Declared returns the declared inputs of a stored workflow.
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

// InputsText returns the description of a thread's inputs for agents.
func InputsText(s protocol.Start) string {
	if len(s.Inputs) == 0 {
		return "{}"
	}
	text, err := json.Marshal(s.Inputs)
	if err != nil { // impossible: it was read from a node
		return "{}"
	}
	return string(text)
}

// Runnable returns an error for a workflow with features that this program can store but not run. Ignoring
// them would run a different workflow.
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
				return fault.New(protocol.CodeInvalid, "role %q of workflow %q uses %q, which this version of uwf "+
					"does not support", name,
					w.Name, field.name)
			}
		}
	}
	return nil
}
