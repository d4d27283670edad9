package status

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
func (r *Reader) Flight(ctx context.Context, id string) (*Flight, error) {
	head, _, err := r.Lookup(ctx, id)
	if err != nil {
		return nil, fault.Of(err)
	}
	dir := r.RunDir(id)
	last := dir.Read()
	if last.Damaged || !last.Unfinished(head) || !dir.Alive(last) {
		return nil, nil
	}
	return r.flight(ctx, dir, last)
}

// Tried returns the last try of the step that comes next, if it failed or its
// agent was killed; nil otherwise. What it had done is there until the next try.
// Errors are *protocol.Error.
func (r *Reader) Tried(ctx context.Context, id string) (*Flight, error) {
	head, ended, err := r.Lookup(ctx, id)
	if err != nil {
		return nil, fault.Of(err)
	}
	dir := r.RunDir(id)
	last := dir.Read()
	if ended != nil || last.Damaged || last.Head != head || last.Status == rundir.Done || dir.Alive(last) {
		return nil, nil
	}
	if _, done := dir.Finished(); done && last.Status.InFlight() {
		return nil, nil // the next step adopts it
	}
	f, err := r.flight(ctx, dir, last)
	if err != nil {
		return nil, err
	}
	f.Failed = "its agent was killed"
	switch {
	case last.Error != nil:
		f.Failed = last.Error.Message
	case last.Reason != "":
		f.Failed = last.Reason
	}
	return f, nil
}

// flight is what the run of a record has told of.
func (r *Reader) flight(ctx context.Context, dir rundir.Dir, last rundir.Record) (*Flight, error) {
	told, err := agentproc.Announced(ctx, dir.Path)
	if err != nil {
		return nil, fault.Of(err)
	}
	t, err := thread.Open(ctx, r.Store, last.Head)
	if err != nil {
		return nil, fault.Of(err)
	}
	f := &Flight{
		Head: last.Head, Number: t.Len() + 1, Role: last.Role, Agent: last.Agent,
		Started: time.UnixMilli(last.StartedAt), Told: told,
	}
	if last.Replaces {
		f.Number--
	}
	if last.Agent == protocol.CommandAgent {
		f.Printed = r.Secrets().Hide(agentproc.LastPrinted(dir.Path))
	}
	return f, nil
}
