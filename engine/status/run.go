package status

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
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

// hidden is what a program has printed, as it may be shown.
func (r *Reader) hidden(last rundir.Record, text string) string {
	if name := last.Lacks(r.Env); name != "" && text != "" {
		return secret.Hidden + ": " + name + " is not set here as it was"
	}
	set := r.Secrets()
	for name := range last.Granted {
		set.Add(r.Env.Get(name))
	}
	return set.Hide(text)
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
		Stderr:    r.hidden(last, agentproc.Tail(dir.File(runfiles.StderrFile))), // it may be in flight
		WorkerLog: agentproc.Tail(dir.File(runfiles.LogFile)),
	}
	if last.Error != nil {
		run.Error = last.Error.Message
	}
	_, run.Finished = dir.Finished()
	for _, name := range []string{runfiles.StdoutFile, runfiles.StderrFile, runfiles.OutputFile} {
		if info, err := os.Stat(filepath.Join(dir.Path, name)); err == nil && info.Size() > 0 &&
			info.ModTime().After(run.Heard) {
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
	agentproc.Reported
}

// PrintedTurn is what a command at work has printed last, as a turn.
func (f *Flight) PrintedTurn() protocol.Turn { return oscommand.Turn(f.Printed) }

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

// flight is what the run of a record has reported of.
func (r *Reader) flight(ctx context.Context, dir rundir.Dir, last rundir.Record) (*Flight, error) {
	reported, err := agentproc.Announced(ctx, dir.Path)
	if err != nil {
		return nil, fault.Of(err)
	}
	t, err := thread.Open(ctx, r.Store, last.Head)
	if err != nil {
		return nil, fault.Of(err)
	}
	f := &Flight{
		Head: last.Head, Number: t.Len() + 1, Role: last.Role, Agent: last.Agent,
		Started: time.UnixMilli(last.StartedAt), Reported: reported,
	}
	if last.Replaces {
		f.Number--
	}
	if last.Agent == protocol.CommandAgent {
		f.Printed = r.hidden(last, agentproc.LastPrinted(dir.Path))
	}
	return f, nil
}

// Running is a thread that something works on. It needs no node to be read.
// Errors are *protocol.Error.
//
// A process that makes several steps works on its thread between them, too.
func (r *Reader) Running(ctx context.Context) ([]protocol.RunningThread, error) {
	running := []protocol.RunningThread{}
	var damaged error
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			damaged = err // it stands for one thread, and hides no other
			continue
		}
		dir := r.RunDir(h.Thread)
		last := dir.Read()
		engine := last.Engine != 0 && r.Locker().Held(ctx, h.Thread)
		if !engine && (!last.Unfinished(h.Hash) || !dir.Alive(last)) {
			continue
		}
		running = append(running, r.describe(ctx, h.Thread, last, engine))
	}
	r.nameChildren(ctx, running)
	if damaged != nil {
		return running, fault.Of(damaged)
	}
	return running, nil
}

// nameChildren adds to children how people name them.
func (r *Reader) nameChildren(ctx context.Context, running []protocol.RunningThread) {
	all, _ := r.Heads.AllFacts(ctx) // without them each is named by its id
	labels := map[string]map[string]string{}
	for i := range running {
		it := &running[i]
		of := all[it.Thread].Parent
		if of == nil {
			continue
		}
		if labels[of.Thread] == nil {
			labels[of.Thread] = map[string]string{}
			if at, err := r.Show(ctx, of.Thread); err == nil {
				for _, c := range at.Children {
					labels[of.Thread][c.Thread] = c.Label
				}
			}
		}
		it.Label, it.Path = labels[of.Thread][it.Thread], of.Key
		for up := all[of.Thread].Parent; up != nil; of, up = up, all[up.Thread].Parent {
			it.Path = children.Address(up.Key, it.Path)
		}
		it.Path = children.Address(of.Thread, it.Path)
	}
}

// describe says who works on a thread: the engine, and the agent of its record.
func (r *Reader) describe(ctx context.Context, id string, last rundir.Record, engine bool) protocol.RunningThread {
	t := protocol.RunningThread{
		Thread: id, Workflow: last.Workflow, Role: last.Role, Agent: last.Agent, AgentPid: last.Pid,
		StartedAt: last.StartedAt,
	}
	if !engine { // it was killed, its agent lives on
		return t
	}
	t.Pid = last.Engine
	if who, err := r.Locker().Holder(ctx, id); err == nil {
		t.Pid = who.Pid
	}
	return t
}

// HeldBy is the error that says who holds a thread's lock.
func (r *Reader) HeldBy(ctx context.Context, id string) error {
	err, suspended := fault.New(protocol.CodeLocked, "thread %s is being stepped by another process", id), ""
	if who, noteErr := r.Locker().Holder(ctx, id); noteErr == nil {
		err = fault.New(protocol.CodeLocked, "thread %s is being stepped by pid %d since %s", id, who.Pid, r.clock(who.Since))
		if proc.Stopped(who.Pid) {
			err.Message += ", which is suspended"
			suspended = strconv.Itoa(who.Pid)
		}
	}
	return err.Because("running", "thread", id, "suspended", suspended)
}

// Outlived is the error that says that an agent has outlived the process that started it.
func (r *Reader) Outlived(id string, last rundir.Record) error {
	err := fault.New(protocol.CodeLocked, "an agent still works on thread %s", id)
	if last.Pid != 0 {
		err = fault.New(protocol.CodeLocked, "agent %s (pid %d) still works on thread %s since %s; the process that "+
			"started it is gone",
			last.Agent, last.Pid, id, r.clock(time.UnixMilli(last.StartedAt)))
	}
	lost := ""
	if last.Agent == protocol.CommandAgent && !runfiles.Dir(r.RunDir(id).Path).Outlasts() { // nobody sees how it ends
		lost = "yes"
	}
	return err.Because("agent-alive", "thread", id, "lost", lost)
}

// clock shows a time in the user's zone.
func (r *Reader) clock(t time.Time) string {
	return t.In(r.Env.Now().Location()).Format(time.RFC3339)
}

// Wait returns when nothing works on the thread any more, nor on its children: the agent
// has ended, and so has the process that started it, with all the steps that it was to
// make. Errors are *protocol.Error, or what ended ctx.
func (r *Reader) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return r.waitWhile(ctx, thread, r.busyTogether)
}

// WaitItself is [Reader.Wait] for a thread without its children.
func (r *Reader) WaitItself(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return r.waitWhile(ctx, thread, r.running)
}

func (r *Reader) waitWhile(ctx context.Context, thread string,
	busy func(context.Context, string) (bool, error)) (protocol.StepOutput, error) {
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		running, err := busy(ctx, thread)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
		if !running {
			return r.Show(ctx, thread)
		}
		if err := retry.Pause(ctx, wait); err != nil {
			return protocol.StepOutput{}, fault.Of(err)
		}
	}
}

// Busy reports whether anything works on a thread: what [Reader.Wait] waits for.
// Errors are *protocol.Error.
func (r *Reader) Busy(ctx context.Context, thread string) (bool, error) {
	busy, err := r.busyTogether(ctx, thread)
	return busy, fault.OrNil(err)
}

// busyTogether reports whether anything works on a thread or its children. Whoever drives
// them holds none of them for a moment, between two, so it is looked more than once.
func (r *Reader) busyTogether(ctx context.Context, id string) (bool, error) {
	const looks = 3
	for range looks {
		if busy, err := r.busyNow(ctx, id); busy || err != nil {
			return busy, err
		}
		// A thread that cannot be read has no children.
		if kids, err := r.Started(ctx, id); err != nil || len(kids) == 0 {
			return r.running(ctx, id)
		}
		if err := retry.Pause(ctx, retry.MaxWait); err != nil {
			return false, err
		}
	}
	return false, nil
}

// busyNow reports whether anything works on a thread or its children at the moment.
func (r *Reader) busyNow(ctx context.Context, id string) (bool, error) {
	if busy, err := r.running(ctx, id); busy || err != nil {
		return busy, err
	}
	kids, _ := r.Started(ctx, id)
	for _, k := range kids {
		if k.Ended {
			continue
		}
		if busy, err := r.busyNow(ctx, k.Thread); busy || err != nil {
			return busy, err
		}
	}
	return false, nil
}

// running reports whether an agent is at work, or a process that makes steps.
func (r *Reader) running(ctx context.Context, id string) (bool, error) {
	head, _, err := r.Lookup(ctx, id)
	if err != nil {
		return false, err
	}
	dir := r.RunDir(id)
	last := dir.Read()
	return r.Locker().Held(ctx, id) || locker.Orphan(ctx, r.Locker(), id).Pid != 0 || (last.Unfinished(head) &&
		dir.Alive(last)), nil
}

// NotParked takes the place of a time that has passed: a field of the facts that is not
// set changes nothing.
const NotParked = 1

// isParked reports whether a thread waits, at a head, for a provider to grant more, whether or not
// the time has come. What was noted at another head is history.
func isParked(facts heads.Facts, head protocol.Hash) bool {
	return facts.ParkedUntil > NotParked && (facts.ParkedAt == "" || facts.ParkedAt == head)
}

// longestPark is beyond what anybody waits for: a clock that was set back makes no more
// of a time that has been kept.
const longestPark = 32 * 24 * time.Hour

// parkedUntil is until when a thread is parked, in ms; 0: it is not.
func (r *Reader) parkedUntil(facts heads.Facts) int64 {
	if left := facts.ParkedUntil - r.Env.Now().UnixMilli(); left <= 0 || left > longestPark.Milliseconds() {
		return 0
	}
	return facts.ParkedUntil
}

// AwaitParked waits until a thread that is parked may go on. The clock may be set
// meanwhile, so it is asked again and again.
func (r *Reader) AwaitParked(ctx context.Context, thread string) error {
	for {
		at, err := r.Show(ctx, thread) // the time may be that of its children
		if err != nil || at.Status != protocol.StatusRateLimited || at.RateLimitedUntil == nil {
			return fault.OrNil(err)
		}
		wait := min(time.UnixMilli(*at.RateLimitedUntil).Sub(r.Env.Now())+time.Millisecond, time.Minute)
		if err := retry.Pause(ctx, wait); err != nil {
			return fault.Ended(ctx, err)
		}
	}
}
