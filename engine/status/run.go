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

// Run describes the last try of a thread's step, in flight or not. If its record is damaged, only Dir is known.
type Run struct {
	protocol.LastTry
	Head     protocol.Hash
	Pid      int  // process ID of the agent
	Damaged  bool // its record is unreadable
	Attended bool // a process of uwf works on the thread
}

// hidden returns a program's output with secrets removed.
func (r *Reader) hidden(last rundir.Record, text string) string {
	if name := last.Lacks(r.Env); name != "" && text != "" {
		return secret.Hidden + ": " + name + " has another value here"
	}
	set := r.Secrets()
	for name := range last.Granted {
		set.Add(r.Env.Get(name))
	}
	return set.Hide(text)
}

// LastRun describes a thread's last try, or returns nil if there was none.
func (r *Reader) LastRun(ctx context.Context, thread string) *Run {
	if CheckID(thread) != nil {
		return nil
	}
	dir := r.RunDir(thread)
	last := dir.Read()
	if !last.Damaged && last.Thread == "" {
		return nil
	}
	run := &Run{Head: last.Head, Pid: last.Pid, Damaged: last.Damaged, Attended: r.Locker().Held(ctx, thread),
		LastTry: protocol.LastTry{
			Role: last.Role, Agent: last.Agent, Command: last.Command, Status: string(last.Status), Alive: dir.Alive(last),
			StartedAt: last.StartedAt, Dir: dir.Path,
			Stderr:    r.hidden(last, agentproc.Tail(dir.File(runfiles.StderrFile))), // the try may be in flight
			WorkerLog: agentproc.Tail(dir.File(runfiles.LogFile)),
		}}
	if last.Error != nil {
		run.Error = last.Error.Message
	}
	for _, name := range []string{runfiles.StdoutFile, runfiles.StderrFile, runfiles.OutputFile} {
		info, err := os.Stat(filepath.Join(dir.Path, name))
		if err != nil || info.Size() == 0 {
			continue
		}
		if ms := info.ModTime().UnixMilli(); run.LastOutputAt == nil || ms > *run.LastOutputAt {
			run.LastOutputAt = &ms
		}
	}
	return run
}

// MadeHere reports whether the last run of a thread on this machine made step after head, and the thread has
// not been moved since.
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

// LastCommand returns the command of a thread's last try as the user wrote it, or nil if unknown.
func (r *Reader) LastCommand(thread string) []string {
	if CheckID(thread) != nil {
		return nil
	}
	return r.RunDir(thread).Read().Command
}

// Flight describes a step in progress, or a failed try, as far as it has been reported.
type Flight struct {
	Head    protocol.Hash // the thread's head while the agent works
	Number  int           // starts at 1
	Role    string
	Agent   string // as the user specified it
	Started time.Time
	Failed  string // why it ended without a step; "" if it has not
	Printed string // last line of a command's output, cleaned
	agentproc.Reported
}

// PrintedTurn returns the last output of a running command as a turn.
func (f *Flight) PrintedTurn() protocol.Turn { return oscommand.Turn(f.Printed) }

// Flight returns a thread's step in flight, or nil if no agent is working on it. Errors are *protocol.Error.
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

// Tried returns the last try of the next step if it failed or its agent was killed, else nil. Its output
// stays available until the next try. Errors are *protocol.Error.
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

// flight returns what the run of a record has reported.
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

// Running returns the threads that are being worked on. It reads no nodes. A process that makes several steps
// counts as working between them. Errors are *protocol.Error.
func (r *Reader) Running(ctx context.Context) ([]protocol.RunningThread, error) {
	running := []protocol.RunningThread{}
	var damaged error
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			damaged = err // an unreadable entry affects one thread only
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

// nameChildren adds the display names of children.
func (r *Reader) nameChildren(ctx context.Context, running []protocol.RunningThread) {
	all, _ := r.Heads.AllFacts(ctx) // on failure, children are shown by ID
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
		for range heads.Generations {
			up := all[of.Thread].Parent
			if up == nil {
				break
			}
			of, it.Path = up, children.Address(up.Key, it.Path)
		}
		it.Path = children.Address(of.Thread, it.Path)
	}
}

// describe returns the engine and the agent that work on a thread.
func (r *Reader) describe(ctx context.Context, id string, last rundir.Record, engine bool) protocol.RunningThread {
	t := protocol.RunningThread{
		Thread: id, Workflow: last.Workflow, Role: last.Role, Agent: last.Agent, AgentPid: last.Pid,
		StartedAt: last.StartedAt,
	}
	if !engine { // it was killed, but its agent is still running
		return t
	}
	t.Pid = last.Engine
	if who, err := r.Locker().Holder(ctx, id); err == nil {
		t.Pid = who.Pid
	}
	return t
}

// HeldBy returns the error for a locked thread, which identifies the holder.
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

// Outlived returns the error for an agent that has outlived the process that started it.
func (r *Reader) Outlived(id string, last rundir.Record) error {
	err := fault.New(protocol.CodeLocked, "an agent is still working on thread %s", id)
	if last.Pid != 0 {
		err = fault.New(protocol.CodeLocked, "agent %s (pid %d) has been working on thread %s since %s; its "+
			"parent process is gone",
			last.Agent, last.Pid, id, r.clock(time.UnixMilli(last.StartedAt)))
	}
	lost := ""
	if last.Agent == protocol.CommandAgent && !runfiles.Dir(r.RunDir(id).Path).Outlasts() { // its exit status will be lost
		lost = "yes"
	}
	return err.Because("agent-alive", "thread", id, "lost", lost)
}

// clock formats a time in the user's time zone.
func (r *Reader) clock(t time.Time) string {
	return t.In(r.Env.Now().Location()).Format(time.RFC3339)
}

// Wait waits until nothing works on the thread or its children: the agent has ended, and the process that
// started it has made all its steps. Errors are *protocol.Error, or the cause of ctx.
func (r *Reader) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	return r.waitWhile(ctx, thread, r.busyTogether)
}

// WaitItself is like [Reader.Wait], but ignores children.
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

// Busy reports whether anything works on a thread or its children, so that [Reader.Wait] would wait. Errors
// are *protocol.Error.
func (r *Reader) Busy(ctx context.Context, thread string) (bool, error) {
	busy, err := r.busyTogether(ctx, thread)
	return busy, fault.OrNil(err)
}

// busyTogether reports whether anything works on a thread or its children. A driver briefly holds no lock
// when it switches between them, so busyTogether looks more than once.
func (r *Reader) busyTogether(ctx context.Context, id string) (bool, error) {
	const looks = 3
	for range looks {
		if busy, err := r.busyNow(ctx, id); busy || err != nil {
			return busy, err
		}
		// An unreadable thread counts as having no children.
		if kids, err := r.Started(ctx, id); err != nil || len(kids) == 0 {
			return r.running(ctx, id)
		}
		if err := retry.Pause(ctx, retry.MaxWait); err != nil {
			return false, err
		}
	}
	return false, nil
}

// busyNow reports whether anything works on a thread or its children at this moment.
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

// running reports whether an agent or a process that makes steps works on a thread.
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

// NotParked clears the time until which a thread is rate-limited. Zero cannot, because unset fields of a
// change of facts have no effect.
const NotParked = 1

// isParked reports whether a thread is rate-limited at head, even if the limit has reset by now. Entries for
// other heads are out of date.
func isParked(facts heads.Facts, head protocol.Hash) bool {
	return facts.ParkedUntil > NotParked && (facts.ParkedAt == "" || facts.ParkedAt == head)
}

// longestPark exceeds any real wait. It limits the effect of a clock that was set back.
const longestPark = 32 * 24 * time.Hour

// parkedUntil returns when a thread's rate limit resets in Unix milliseconds, or 0 if it is not rate-limited.
func (r *Reader) parkedUntil(facts heads.Facts) int64 {
	if left := facts.ParkedUntil - r.Env.Now().UnixMilli(); left <= 0 || left > longestPark.Milliseconds() {
		return 0
	}
	return facts.ParkedUntil
}

// AwaitParked waits until a rate-limited thread can continue. It checks repeatedly, since the clock may be
// changed.
func (r *Reader) AwaitParked(ctx context.Context, thread string) error {
	for {
		at, err := r.Show(ctx, thread) // the time can come from its children
		if err != nil || at.Status != protocol.StatusRateLimited || at.RateLimitedUntil == nil {
			return fault.OrNil(err)
		}
		wait := min(time.UnixMilli(*at.RateLimitedUntil).Sub(r.Env.Now())+time.Millisecond, time.Minute)
		if err := retry.Pause(ctx, wait); err != nil {
			return fault.Ended(ctx, err)
		}
	}
}
