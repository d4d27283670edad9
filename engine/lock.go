package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
)

// lockedThread is a thread whose lock is held: no other process steps, resumes or ends it.
type lockedThread struct {
	id    string
	head  protocol.Hash
	ended *heads.Ended // nil if the thread is active
	lock  locker.Lock
	facts heads.Facts // state outside its chain
	// elsewhere describes the thread's files if they are not in its directory.
	elsewhere worktree.MissingFiles
	since     time.Time
	// orphan is an agent that is still running although the previous holder of the lock is gone. The run's
	// record also identifies it, unless the agent has damaged the record.
	orphan locker.Process
	// unknown means that there is no such thread.
	unknown bool
	// open reports whether the thread has work that is in progress or was interrupted.
	open func() bool
	// inStep means that a step has started and its end is not reported yet. farewell, the thread's outcome,
	// is reported after that.
	inStep   bool
	farewell *Event
	// kept is the work tree of its attempt; nil if its files are not snapshotted.
	kept *worktree.Checkout
	// barrier keeps the thread from running anything; barred explains how to remove it.
	barrier decide.Barrier
	barred  error
}

// lock takes a thread's lock or fails at once. It waits only for a process that tests whether the lock is
// held.
func (e *Engine) lock(ctx context.Context, id string) (*lockedThread, error) {
	if err := status.CheckID(id); err != nil {
		return nil, err
	}
	if err := e.Reader.MayWrite(); err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), rundir.ProbePatience)
	defer cancel()
	lock, err := e.Reader.Locker().Lock(brief, id)
	if errors.Is(err, locker.ErrLocked) {
		return nil, e.Reader.HeldBy(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return e.take(ctx, id, lock)
}

// take looks up a thread whose lock is held.
func (e *Engine) take(ctx context.Context, id string, lock locker.Lock) (*lockedThread, error) {
	h := &lockedThread{id: id, lock: lock}
	h.open = func() bool { return e.Reader.IsOpen(h.id, h.head) }
	var err error
	if h.head, h.ended, err = e.Reader.Lookup(ctx, id); err != nil {
		h.unknown = errors.Is(err, heads.ErrNoThread)
		h.release()
		return nil, err
	}
	h.since = e.Reader.Env.Now()
	h.orphan = locker.Orphan(ctx, e.Reader.Locker(), id)
	h.note(h.orphan)
	return h, nil
}

// note writes the lock's holder and its agent into the lock file. The lock works without it, but then error
// messages cannot identify the holder, and an agent that outlives us and has deleted its run directory goes
// unnoticed.
func (h *lockedThread) note(agent locker.Process) {
	_ = h.lock.Note(locker.Holder{Pid: os.Getpid(), Since: h.since, Child: agent.Pid, Birth: agent.Birth})
}

// release releases the lock. It removes the lock file of a thread that no longer exists, so that such files
// don't accumulate; a failure leaves a small file. It keeps the lock file of an ended thread with unfinished
// work, because [status.Reader.Due] looks for it.
func (h *lockedThread) release() {
	if h.unknown || h.ended != nil && !h.open() {
		_ = h.lock.RemoveAndUnlock()
		return
	}
	_ = h.lock.Unlock()
}

// Exclusive locks a thread for a change other than a step. No other process can step, resume or end the
// thread until release is called. It fails at once with code locked if a step is running, even if that step's
// engine is gone. Errors are *protocol.Error.
func (e *Engine) Exclusive(ctx context.Context, thread string) (release func(), err error) {
	defer fault.Coded(&err)
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, err
	}
	_, err = e.lastRun(ctx, h)
	if err == nil && e.Reader.CutOff(h.id) {
		err = fault.New(protocol.CodeFailed, "moving thread %s to another step was interrupted",
			h.id).Because("cut-off", "thread", h.id)
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h.release, nil
}

// Waiting returns the finished step of an interrupted run, which the thread's next step adopts; "" if none.
func (e *Engine) Waiting(ctx context.Context, thread string) protocol.Hash {
	head, _, err := e.Reader.Lookup(ctx, thread)
	dir := e.Reader.RunDir(thread)
	if last := dir.Read(); err != nil || last.Missing || !last.Unfinished(head) {
		return ""
	}
	left, _ := dir.Finished()
	return left.StepHash
}

// lastRun returns the record of the thread's last run, or an error if its agent is still working on this
// head.
func (e *Engine) lastRun(ctx context.Context, h *lockedThread) (rundir.Record, error) {
	dir := e.Reader.RunDir(h.id)
	r := dir.Read()
	if e.agentAlive(ctx, h, dir, r) {
		return r, e.Reader.Outlived(h.id, r)
	}
	return r, nil
}

// agentAlive reports whether the agent of the thread's last run is still working on this head, even if it has
// changed or deleted its run directory.
func (e *Engine) agentAlive(ctx context.Context, h *lockedThread, dir rundir.Dir, r rundir.Record) bool {
	return h.orphan.Pid != 0 || ((r.Unfinished(h.head) || r.Missing) && dir.SurelyAlive(ctx, r))
}

// hasEnded returns the error of an operation that requires an active thread.
func hasEnded(h *lockedThread) error {
	return fault.New(protocol.CodeFailed, "thread %s has already ended: %s", h.id,
		h.ended.Status).Because("ended", "thread", h.id, "head", string(h.head), "status", string(h.ended.Status))
}

// The author of an imported thread chose its prompts, workflow and directory. It runs nothing on this machine
// until a user has chosen a directory. The choice is stored in the thread's facts (package heads), because
// its start node cannot change. Its forks count as imported as well.

// settle determines where the thread works, or records the directory that the user passes now.
func (e *Engine) settle(ctx context.Context, h *lockedThread, w Work) error {
	facts, err := e.Reader.Heads.Facts(ctx, h.id)
	if err != nil {
		return err
	}
	if facts, err = e.asItsParent(ctx, h.id, facts); err != nil {
		return err
	}
	h.facts = facts
	h.barrier, h.barred = decide.Open, nil
	if w.Cwd == "" {
		if facts.Foreign() {
			h.barrier, h.barred = decide.NoCwd, e.Origins().MustSayWhere(ctx, h.id, h.head, facts, w.Do.again())
			return nil
		}
		return e.trusted(ctx, h, facts)
	}
	if e.Files().WithFiles(ctx, h.head) != nil { // don't create a worktree for a refused thread
		if err := e.trusted(ctx, h, facts); err != nil || h.barrier != decide.Open && w.Do != DoAnswer {
			return err
		}
	}
	imported := facts.Imported
	if facts.Doubt != nil {
		imported = &heads.Imported{Lost: true}
	}
	change, err := e.maker().WorksIn(ctx, w.Cwd, imported)
	if err != nil {
		return err
	}
	if change.Workspace, h.elsewhere, err = e.Files().WorkspaceIn(ctx, h.files(), change.Workspace, w.KeepFiles); err != nil {
		return err
	}
	h.facts.Workspace = change.Workspace
	if h.elsewhere.Refused == nil {
		if err := e.Reader.Heads.SetFacts(ctx, h.id, change); err != nil {
			return err
		}
	}
	if made := change.Workspace.Mode == worktree.InWorktree; made && (facts.Workspace == nil ||
		facts.Workspace.Mode != worktree.InWorktree) {
		if err := e.Files().Created(h.id); err != nil {
			return err
		}
	}
	return e.trusted(ctx, h, facts)
}

// trusted checks that all commands of an imported thread's workflow have been confirmed.
func (e *Engine) trusted(ctx context.Context, h *lockedThread, facts heads.Facts) error {
	err := e.Origins().Imported(ctx, h.id, h.head, facts)
	if errors.As(err, new(*UntrustedError)) {
		h.barrier, h.barred = decide.Untrusted, err
		return nil
	}
	return err
}

// asItsParent lets an imported child work in the directory that a user chose for its parent.
func (e *Engine) asItsParent(ctx context.Context, id string, facts heads.Facts) (heads.Facts, error) {
	if facts.Parent == nil || facts.Imported == nil || !facts.Foreign() {
		return facts, nil
	}
	above, err := e.Reader.Heads.Facts(ctx, facts.Parent.Thread)
	if err != nil {
		return facts, err
	}
	if above.Imported == nil || above.Foreign() || above.Workspace == nil {
		return facts, nil
	}
	confirmed := *facts.Imported
	confirmed.Confirmed = true
	change := heads.Facts{Imported: &confirmed, Workspace: above.Workspace}
	if own, err := e.Files().OwnTree(ctx, id, above.Workspace); err != nil {
		return facts, err
	} else if own != nil {
		change.Workspace = own
	}
	facts.Imported, facts.Workspace = change.Imported, change.Workspace
	return facts, e.Reader.Heads.SetFacts(ctx, id, change)
}

// again returns the request that repeats the action, for use as a fact of an error reason.
func (a Action) again() string {
	switch a {
	case DoStep, DoUndo, DoRedo, DoRetry, DoContinue:
		return protocol.AgainStep
	case DoAnswer: // has flags for its input
		return protocol.AgainForm
	case DoPoke:
		return protocol.AgainRetry
	}
	return protocol.AgainAnswer
}

// Settled returns an error if an imported thread has no directory yet. Errors are *protocol.Error.
func (e *Engine) Settled(ctx context.Context, id string) error {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return err
	}
	h := &lockedThread{id: id, head: head}
	return fault.OrNil(cmp.Or(e.settle(ctx, h, Work{}), h.barred))
}

// at returns the position of a locked thread.
func (e *Engine) at(ctx context.Context, h *lockedThread) (*status.Position, error) {
	return e.atNode(ctx, h, h.head)
}

// atNode returns the position of a locked thread at a node of its chain.
func (e *Engine) atNode(ctx context.Context, h *lockedThread, node protocol.Hash) (*status.Position, error) {
	p, err := e.Reader.Position(ctx, h.id, node)
	if err != nil {
		return p, err
	}
	if w := h.facts.Workspace; w != nil {
		p.Root = w.Root
	}
	if p.State.Last != nil {
		p.State.Last.Location = p.Here(p.State.Last.Location)
	}
	return p, nil
}
