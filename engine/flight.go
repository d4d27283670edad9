package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
)

// Flight is a step that an agent works on, or has tried in vain, as far as it has
// told of it.
type Flight struct {
	Head    protocol.Hash // of the thread, while the agent works
	Number  int           // from 1
	Role    string
	Agent   string // as the user named it
	Started time.Time
	Failed  string // why it ended without a step; "": it has not
	Printed string // the last line that a command has printed, cleaned
	agentproc.Told
}

// Flight returns the step in flight of a thread; nil if no agent works on it.
// Errors are *protocol.Error.
func (e *Engine) Flight(ctx context.Context, id string) (*Flight, error) {
	head, _, err := e.lookup(ctx, id)
	if err != nil {
		return nil, fault.Of(err)
	}
	dir := e.runDir(id)
	r := dir.Read()
	if r.Damaged || !r.Unfinished(head) || !dir.Alive(r) {
		return nil, nil
	}
	return e.flight(ctx, dir, r)
}

// Tried returns the last try of the step that comes next, if it failed or its
// agent was killed; nil otherwise. What it had done is there until the next try.
// Errors are *protocol.Error.
func (e *Engine) Tried(ctx context.Context, id string) (*Flight, error) {
	head, ended, err := e.lookup(ctx, id)
	if err != nil {
		return nil, fault.Of(err)
	}
	dir := e.runDir(id)
	r := dir.Read()
	if ended != nil || r.Damaged || r.Head != head || r.Status == rundir.Done || dir.Alive(r) {
		return nil, nil
	}
	if _, done := dir.Finished(); done && r.Status.InFlight() {
		return nil, nil // the next step adopts it
	}
	f, err := e.flight(ctx, dir, r)
	if err != nil {
		return nil, err
	}
	f.Failed = "its agent was killed"
	switch {
	case r.Error != nil:
		f.Failed = r.Error.Message
	case r.Reason != "":
		f.Failed = r.Reason
	}
	return f, nil
}

// flight is what the run of a record has told of.
func (e *Engine) flight(ctx context.Context, dir rundir.Dir, r rundir.Record) (*Flight, error) {
	told, err := agentproc.Announced(ctx, dir.Path)
	if err != nil {
		return nil, fault.Of(err)
	}
	t, err := thread.Open(ctx, e.Store, r.Head)
	if err != nil {
		return nil, fault.Of(err)
	}
	f := &Flight{
		Head: r.Head, Number: t.Len() + 1, Role: r.Role, Agent: r.Agent,
		Started: time.UnixMilli(r.StartedAt), Told: told,
	}
	if r.Replaces {
		f.Number--
	}
	if r.Agent == protocol.CommandAgent {
		f.Printed = e.secrets().Hide(agentproc.LastPrinted(dir.Path))
	}
	return f, nil
}
