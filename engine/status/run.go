package status

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Run is what is known of a thread's last try of a step, in flight or not.
type Run struct {
	Dir       string // where its files are
	Damaged   bool   // its record cannot be read; nothing below is known
	Head      protocol.Hash
	Role      string
	Agent     string // as the user named it
	Command   []string
	Status    string // starting, running, done, failed, rejected or stopped
	Error     string
	Started   time.Time
	Heard     time.Time // when the agent last wrote anything; zero: it has not
	Pid       int       // of the agent
	Alive     bool      // the agent, or who is starting or judging it
	Attended  bool      // a process of ours works on the thread
	Finished  bool      // the agent has left a result
	Stderr    string    // its end, cleaned
	WorkerLog string    // the end of a background worker's log, cleaned
}

// LastRun returns what is known of a thread's last try; nil if there is nothing.
func (r *Reader) LastRun(ctx context.Context, thread string) *Run {
	if CheckID(thread) != nil {
		return nil
	}
	dir := r.RunDir(thread)
	last := dir.Read()
	if !last.Damaged && last.Thread == "" {
		return nil
	}
	run := &Run{
		Dir: dir.Path, Damaged: last.Damaged, Head: last.Head, Role: last.Role, Agent: last.Agent, Command: last.Command,
		Status: string(last.Status), Started: time.UnixMilli(last.StartedAt), Pid: last.Pid,
		Alive: dir.Alive(last), Attended: r.Locker().Held(ctx, thread),
		Stderr:    r.Secrets().Hide(agentproc.Tail(dir.File(runfiles.StderrFile))), // it may be in flight
		WorkerLog: agentproc.Tail(dir.File(runfiles.LogFile)),
	}
	if last.Error != nil {
		run.Error = last.Error.Message
	}
	_, run.Finished = dir.Finished()
	for _, name := range []string{runfiles.StdoutFile, runfiles.StderrFile, runfiles.OutputFile} {
		if info, err := os.Stat(filepath.Join(dir.Path, name)); err == nil && info.Size() > 0 && info.ModTime().After(run.Heard) {
			run.Heard = info.ModTime()
		}
	}
	return run
}

// MadeHere reports whether a step is what the last run of a thread has made here, after a head
// from which nobody has moved it on since.
func (r *Reader) MadeHere(ctx context.Context, thread string, head, step protocol.Hash) bool {
	if CheckID(thread) != nil {
		return false
	}
	dir := r.RunDir(thread)
	last := dir.Read()
	if last.Thread != thread || last.Head != head {
		return false
	}
	if here, err := r.Store.Has(ctx, step); err != nil || !here {
		return false
	}
	if last.Status == rundir.Done {
		return last.StepHash == step
	}
	left, err := dir.Left()
	return err == nil && last.Status.InFlight() && left.StepHash == step
}

// LastCommand is the command of a thread's last try, as the user wrote it; nil if it is not
// known.
func (r *Reader) LastCommand(thread string) []string {
	if CheckID(thread) != nil {
		return nil
	}
	return r.RunDir(thread).Read().Command
}

// Flight is a step that an agent is working on, or a failed try of one, as far as it has
// reported.
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

// Tried returns the last try of the next step if it failed or its agent was killed; nil
// otherwise. What it did stays available until the next try. Errors are *protocol.Error.
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
