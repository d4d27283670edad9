package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/agentproc"
	"github.com/united-workforce/uwf/protocol"
)

// Flight is a step that an agent works on, as far as it has told of it.
type Flight struct {
	Head    protocol.Hash // of the thread, while the agent works
	Number  int           // from 1
	Role    string
	Agent   string // as the user named it
	Started time.Time
	agentproc.Told
}

// Flight returns the step in flight of a thread; nil if no agent works on it.
// Errors are *protocol.Error.
func (e *Engine) Flight(ctx context.Context, id string) (*Flight, error) {
	head, _, err := e.lookup(ctx, id)
	if err != nil {
		return nil, coded(err)
	}
	dir := e.runDir(id)
	r := dir.read()
	if r.damaged || !r.unfinished(head) || !dir.alive() {
		return nil, nil
	}
	told, err := agentproc.Announced(dir.path)
	if err != nil {
		return nil, coded(err)
	}
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return nil, coded(err)
	}
	f := &Flight{
		Head: head, Number: t.Len() + 1, Role: r.Role, Agent: r.Agent,
		Started: time.UnixMilli(r.StartedAt), Told: told,
	}
	if r.Replaces {
		f.Number--
	}
	return f, nil
}
