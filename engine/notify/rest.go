package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Reporter reports when threads come to rest, whether this process worked on them or one that was killed.
// Create it as a literal.
type Reporter struct {
	*status.Reader
	// Report, if not nil, is called with the kind of notification (such as protocol.NoticeWaiting) and the
	// thread's state.
	Report func(event string, at protocol.StepOutput)
	Shared bool // other machines also step these threads
}

// threadState is the state of a thread before or after work on it.
type threadState struct {
	out     protocol.StepOutput
	started int64 // start of its last try, Unix milliseconds
}

func (t Reporter) stateOf(ctx context.Context, id string) (threadState, bool) {
	out, err := t.Show(ctx, id)
	if err != nil {
		return threadState{}, false
	}
	r := threadState{out: out}
	if record := t.RunDir(id).Read(); !record.Damaged {
		r.started = record.StartedAt
	}
	return r, true
}

// RunAndReport does work on a thread and then reports if the thread has come to rest. It doesn't report what a user
// asked for, such as a stop, an unchanged state, or the end of a child, whose parent continues.
func (t Reporter) RunAndReport(ctx context.Context, id string,
	work func() ([]protocol.StepOutput, error)) ([]protocol.StepOutput, error) {
	if t.Report == nil {
		return work()
	}
	leave := t.attend(ctx, id)
	defer leave()
	before, known := t.stateOf(ctx, id)
	outs, err := work()
	ctx = context.WithoutCancel(ctx)
	after, there := t.stateOf(ctx, id)
	if !known || !there || err != nil && (isAsked(fault.Of(err).Code) || t.Shared && protocol.OfMachine(err)) {
		return outs, err
	}
	event := status.NoticeOf(after.out)
	moved := after.out.Head != before.out.Head || after.started != before.started || status.NoticeOf(before.out) != event ||
		len(after.out.Children) > 0 && err != nil || asks(after.out) != asks(before.out) || t.isNew(ctx, after.out)
	if after.out.Status.AtEnd() {
		facts, factsErr := t.Heads.Facts(ctx, id)
		moved = moved && factsErr == nil && facts.Parent == nil
	}
	if event != "" && moved {
		t.Report(event, after.out)
	}
	return outs, err
}

// isAsked reports whether work ended as the user wanted, or had nothing to do.
func isAsked(c protocol.Code) bool {
	return slices.Contains([]protocol.Code{
		protocol.CodeTerminated, protocol.CodeInterrupted, protocol.CodeHangup, protocol.CodeLocked, protocol.CodeUsage,
		protocol.CodeNotFound,
	}, c)
}

func asks(out protocol.StepOutput) string {
	if out.Question == nil {
		return ""
	}
	return out.Question.Role + "\x00" + out.Question.Text
}

// isNew reports whether a thread asks a question before its first step. It has been in this state since its
// creation, so it was never reported.
func (t Reporter) isNew(ctx context.Context, out protocol.StepOutput) bool {
	if out.Question == nil {
		return false
	}
	chain, err := thread.Open(ctx, t.Nodes(), out.Head)
	return err == nil && chain.Last == nil
}

// A process that works on a thread and must report on it locks a file with the thread's ID. A killed process
// cannot report, but it leaves the file unlocked. The next process finds it and reports instead.

// attended returns the directory of these files.
func (t Reporter) attended() string { return filepath.Join(t.Dirs.Notify(), "working") }

// attending takes the lock that protects taking and checking the files, so that a check blocks no process.
func (t Reporter) attending(ctx context.Context) (*durable.Held, error) {
	return durable.Lock(ctx, t.attended()+".lock")
}

// attend locks the file of a thread until leave is called. If another process holds it, that process reports.
func (t Reporter) attend(ctx context.Context, id string) (leave func()) {
	looking, err := t.attending(ctx)
	if err != nil {
		return func() {} // the work is more important
	}
	held, err := durable.TryLock(filepath.Join(t.attended(), id))
	_ = looking.Unlock() // also released when the process ends
	if err != nil {
		return func() {}
	}
	return func() { _ = held.RemoveAndUnlock() } // a file that stays is checked later and found to be reported
}

// NotifyAbandoned reports the state of threads whose process was killed. It reports each thread once; if its
// agent is still running, after that has ended.
func (t Reporter) NotifyAbandoned(ctx context.Context) {
	if entries, err := os.ReadDir(t.attended()); err != nil || len(entries) == 0 {
		return
	}
	looking, err := t.attending(ctx)
	if err != nil {
		return // the next call reports
	}
	defer func() { _ = looking.Unlock() }()
	entries, _ := os.ReadDir(t.attended()) // another process may have reported by now
	for _, entry := range entries {
		held, err := durable.TryLock(filepath.Join(t.attended(), entry.Name()))
		if err != nil {
			continue // another process is working on it
		}
		if t.abandoned(ctx, entry.Name()) {
			_ = held.RemoveAndUnlock() // don't report it again
			continue
		}
		_ = held.Unlock()
	}
}

// abandoned reports whether nothing remains to be reported about a thread.
func (t Reporter) abandoned(ctx context.Context, id string) bool {
	at, err := t.Show(ctx, id)
	switch {
	case errors.Is(err, heads.ErrNoThread):
		return true
	case err != nil || t.Locker().Held(ctx, id) || t.isWorkedOn(ctx, at):
		return false
	}
	event := status.NoticeOf(at)
	if event == "" && t.wasAbandoned(at) {
		event = protocol.NoticeError
		at.Error = fault.Step(fault.New(protocol.CodeInterrupted, "%s", why(at)))
	}
	if at.Status.AtEnd() {
		if facts, err := t.Heads.Facts(ctx, id); err != nil || facts.Parent != nil {
			return err == nil
		}
	}
	if event != "" {
		t.Report(event, at)
	}
	return true
}

// isWorkedOn reports whether an agent of a thread or of its children is alive.
func (t Reporter) isWorkedOn(ctx context.Context, at protocol.StepOutput) bool {
	if at.Status == protocol.StatusRunning {
		return true
	}
	for _, c := range at.Children {
		if c.Status == protocol.StatusRunning {
			return true
		}
		if c.Status != protocol.StatusWaitingForChildren {
			continue
		}
		if below, err := t.Show(ctx, c.Thread); err == nil && t.isWorkedOn(ctx, below) {
			return true
		}
	}
	return false
}

// wasAbandoned reports whether work was started but not finished.
func (t Reporter) wasAbandoned(at protocol.StepOutput) bool {
	record := t.RunDir(at.Thread).Read()
	return at.Status == protocol.StatusWaitingForChildren || at.Status == protocol.StatusIdle &&
		(record.Unfinished(at.Head) || record.Between(at.Head)) && record.Status != rundir.Stopped
}

func why(at protocol.StepOutput) string {
	if at.Pending {
		return "its process was killed; its agent has finished, and the next step uses the result"
	}
	return "its process was killed"
}
