package engine

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/verify"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Fork makes a thread whose head is an existing start or step node. It shares
// everything with the thread that the node comes from. Errors are
// *protocol.Error.
func (e *Engine) Fork(ctx context.Context, node protocol.Hash) (string, error) {
	return e.ForkWith(ctx, node, ForkOptions{})
}

// ForkOptions are options of [Engine.ForkWith]. The zero value works.
type ForkOptions struct {
	Thread   string // the thread in which the node was found; "": one of this home with the same start
	Cwd      string // where the fork works; "": where the other one does
	Files    string // see [workspace.Fork]
	Before   protocol.Hash
	Detached bool
}

// ForkWith is [Engine.Fork] with options. A fork of a thread from elsewhere counts as from
// elsewhere, too.
func (e *Engine) ForkWith(ctx context.Context, node protocol.Hash, o ForkOptions) (string, error) {
	release, err := e.holdStore(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer release()
	head, err := e.Store.Get(ctx, node)
	if err != nil {
		return "", wrongNode(node, "step", err)
	}
	t, err := thread.Open(ctx, e.Store, node)
	var other *cas.TypeError
	if errors.As(err, &other) && other.Hash == node {
		return "", fault.New(protocol.CodeInvalid, "node %s is neither a step nor the start of a thread", node)
	}
	if err != nil {
		return "", fault.Of(err)
	}
	nodes := []cas.Node{head}
	if t.Last != nil {
		named, err := verify.Contents(ctx, e.Store, t.Last.Step, true)
		if err != nil && !errors.As(err, &other) { // the original's agents have details of their own
			return "", fault.Of(err)
		}
		nodes = append(nodes, named...)
	}
	// A fork may begin at the step of a failed run, which nothing durable has named until now.
	if err := e.Store.Commit(ctx, nodes...); err != nil {
		return "", fault.Of(err)
	}
	facts, err := e.origins().Inherited(ctx, t, node)
	if err == nil && o.Cwd != "" {
		var here heads.Facts
		here, err = e.worksIn(ctx, o.Cwd, facts.Imported)
		facts.Imported, facts.Workspace = here.Imported, here.Workspace
	}
	if err != nil {
		return "", fault.Of(err)
	}
	if o.Thread != "" {
		facts.Fork.Thread = o.Thread
	}
	if err := e.asBefore(ctx, &facts, node); err != nil {
		return "", fault.Of(err)
	}
	id, done, err := e.newThread(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer done()
	if facts.Workspace, err = e.Files().Fork(ctx, workspace.Fork{
		Thread: id, At: t, Facts: facts, Moved: o.Cwd != "", Files: o.Files, Before: o.Before, Detached: o.Detached,
	}); err != nil {
		return "", fault.Of(err)
	}
	return e.addThread(ctx, id, node, facts)
}

// asBefore gives a fork the agents chosen for its thread, and the counts of children's attempts at
// the same head.
func (e *Engine) asBefore(ctx context.Context, fork *heads.Facts, head protocol.Hash) error {
	if fork.Fork.Thread == "" {
		return nil
	}
	known, err := e.Heads.Facts(ctx, fork.Fork.Thread)
	if err != nil {
		return err
	}
	fork.Attempts = maps.Clone(known.Attempts)
	maps.DeleteFunc(fork.Attempts, func(key string, _ int) bool { return !strings.HasPrefix(key, string(head)+"/") })
	fork.Agents, err = e.ChosenAgents(ctx, known)
	return err
}
