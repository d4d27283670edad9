package create

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

// ForkOptions are options of [Maker.Fork]. The zero value works.
type ForkOptions struct {
	Thread   string // the thread in which the node was found; "": one of this home with the same start
	Cwd      string // where the fork works; "": where the other one does
	Files    string // see [workspace.Fork]
	Before   protocol.Hash
	Detached bool
}

// Fork makes a thread whose head is an existing start or step node. It shares
// everything with the thread that the node comes from. Errors are
// *protocol.Error.
// A fork of a thread from elsewhere counts as from elsewhere, too.
func (m Maker) Fork(ctx context.Context, node protocol.Hash, o ForkOptions) (string, error) {
	release, err := m.HoldStore(ctx)
	if err != nil {
		return "", fault.Of(err)
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
		return "", fault.Of(err)
	}
	nodes := []cas.Node{head}
	if t.Last != nil {
		named, err := verify.Contents(ctx, m.Store, t.Last.Step, true)
		if err != nil && !errors.As(err, &other) { // the original's agents have details of their own
			return "", fault.Of(err)
		}
		nodes = append(nodes, named...)
	}
	// A fork may begin at the step of a failed run, which nothing durable has named until now.
	if err := m.Store.Commit(ctx, nodes...); err != nil {
		return "", fault.Of(err)
	}
	facts, err := m.origins().Inherited(ctx, t, node)
	if err == nil && o.Cwd != "" {
		var here heads.Facts
		here, err = m.WorksIn(ctx, o.Cwd, facts.Imported)
		facts.Imported, facts.Workspace = here.Imported, here.Workspace
	}
	if err != nil {
		return "", fault.Of(err)
	}
	if o.Thread != "" {
		facts.Fork.Thread = o.Thread
	}
	if err := m.asBefore(ctx, &facts, node); err != nil {
		return "", fault.Of(err)
	}
	id, done, err := m.newThread(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	defer done()
	if facts.Workspace, err = m.Files.Fork(ctx, workspace.Fork{
		Thread: id, At: t, Facts: facts, Moved: o.Cwd != "", Files: o.Files, Before: o.Before, Detached: o.Detached,
	}); err != nil {
		return "", fault.Of(err)
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
