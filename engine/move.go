package engine

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
)

// A move takes the head, files and facts of a thread to another step together. Its intent is made durable
// before the first change. Each change can be repeated, so the next request finishes an interrupted move.

// planFiles checks whether the files can be changed as a move or a poke requires.
func (s *session) planFiles(ctx context.Context) error {
	from, to, err := s.trees(ctx)
	if err != nil || to == "" {
		return err
	}
	if left := s.left(); left != nil && s.isOfAStep(ctx, left.Tree) {
		from = left.Tree
	}
	if err := s.e.Files().Recreate(ctx, s.locked.files()); err != nil {
		return err
	}
	s.change, err = s.e.Files().Plan(ctx, s.locked.files(), s.pos.Dir(), from, to)
	return err
}

// isOfAStep reports whether left files belong to the head or to an undone step. If so, replacing them loses
// nothing else.
func (s *session) isOfAStep(ctx context.Context, tree protocol.Tree) bool {
	if tree == "" {
		return false
	}
	for _, hash := range append([]protocol.Hash{s.locked.head}, s.locked.facts.Undone...) {
		t, err := thread.Open(ctx, s.reader.Nodes(), hash)
		if err == nil && t.Last != nil && t.Last.Files != nil && t.Last.Files.Tree == tree {
			return true
		}
	}
	return false
}

// trees returns the current files, and those that a move or a poke restores; "" means that the files stay. It
// runs git, so it caches the result.
func (s *session) trees(ctx context.Context) (from, to protocol.Tree, err error) {
	if s.looked == nil {
		if from, to, err = s.lookForTrees(ctx); err != nil {
			return "", "", err
		}
		s.looked = &[2]protocol.Tree{from, to}
	}
	return s.looked[0], s.looked[1], nil
}

func (s *session) lookForTrees(ctx context.Context) (from, to protocol.Tree, err error) {
	keep, at := s.e.Files(), s.locked.files()
	if left := s.left(); s.Verb == decide.Redo && left != nil && left.Ahead {
		return left.Tree, left.Tree, nil
	}
	if s.Verb == decide.Redo {
		from, to, err = keep.TreesAround(ctx, at, s.undone)
		return from, to, err
	}
	to, from, err = keep.TreesAround(ctx, at, s.pos.Thread)
	if err != nil || to == "" || !s.Earlier {
		return from, to, err
	}
	steps, err := s.after(ctx, s.target.Thread.Head)
	if err != nil {
		return "", "", err
	}
	first, err := thread.Open(ctx, s.reader.Nodes(), steps[len(steps)-1].Hash)
	if err == nil {
		to, _, err = keep.TreesAround(ctx, at, first)
	}
	return from, to, err
}

// after returns the thread's steps after a node, newest first.
func (s *session) after(ctx context.Context, node protocol.Hash) (steps []thread.Step, err error) {
	for step, err := range s.pos.Thread.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if step.Hash == node {
			break
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// planMove returns the target of a move and the changed facts.
func (s *session) planMove(ctx context.Context) (i rundir.Intent, err error) {
	h := s.locked
	i = rundir.Intent{Kind: rundir.Moving, HeadFrom: h.head, KeepFiles: s.KeepFiles}
	if !s.KeepFiles {
		if i.TreeFrom, i.TreeTo, err = s.trees(ctx); err != nil {
			return i, err
		}
	}
	if s.Verb == decide.Redo {
		i.KeepFiles = i.KeepFiles || s.left() != nil && s.left().Ahead
		i.HeadTo, i.Undone = s.undone.Head, h.facts.Undone[1:]
		return i, nil
	}
	i.HeadTo = s.pos.Previous()
	if s.Earlier {
		i.HeadTo = s.target.Thread.Head
	}
	steps, err := s.after(ctx, i.HeadTo)
	if err != nil {
		return i, err
	}
	if s.undone != nil {
		i.Undone = h.facts.Undone
	}
	for _, step := range steps { // newest first: the last one is redone first
		i.Undone = append([]protocol.Hash{step.Hash}, i.Undone...)
		if !s.pos.Workflow.Roles[step.Role].HasChildren() {
			continue
		}
		before := step.Start
		if step.Prev != nil {
			before = *step.Prev
		}
		if i.Attempts == nil {
			i.Attempts = attemptsOf(h.facts)
		}
		i.Attempts[children.Place{Head: before, Role: step.Role}.AttemptKey("")]++
		s.e.warn(fmt.Sprintf("role %q runs all its children again; a fork of %s keeps their answers",
			step.Role, before))
	}
	return i, nil
}

// move starts a move: an undo, a redo, or the return to the step that a poke repeats.
func (s *session) move(ctx context.Context) (out protocol.StepOutput, err error) {
	i, err := s.planMove(ctx)
	if err != nil {
		return out, err
	}
	s.passed()
	if err := s.change.Claim(); err != nil {
		return out, err
	}
	if err := s.dir.SetIntent(i); err != nil {
		return out, err
	}
	// Children check the intent before they start, so none starts after this.
	if _, err := s.e.eachChild(ctx, s.locked, false, s.e.Stop); err != nil {
		return out, err
	}
	var changed *protocol.FileChanges
	switch {
	case i.KeepFiles || i.TreeTo == "":
	case s.change != nil:
		changed, err = s.change.Write(ctx)
	default:
		err = s.e.Files().Restore(ctx, s.locked.files(), s.pos.Dir(), i.TreeFrom, i.TreeTo)
	}
	if err != nil {
		return out, s.cutOff(err)
	}
	s.release()
	out, err = s.moved(ctx, i)
	out.Files = changed
	return out, err
}

// cutOff adds to an error that the change is incomplete, and how to continue it.
func (s *session) cutOff(err error) error {
	id := s.locked.id
	why := fault.Of(fmt.Errorf("moving thread %s to another step is not finished: %w", id, err))
	if _, gone := os.Lstat(s.pos.Dir()); gone != nil {
		return why.Because("move-cut-off-elsewhere", "thread", id)
	}
	return why.Because("move-cut-off", "thread", id)
}

// moved completes a move whose files are in place.
func (s *session) moved(ctx context.Context, i rundir.Intent) (out protocol.StepOutput, err error) {
	h := s.locked
	change := heads.Facts{Undone: i.Undone, Attempts: i.Attempts}
	switch {
	case i.KeepFiles:
		change.FilesLeft = s.leave(ctx, i)
	case h.facts.FilesLeft != nil:
		change.FilesLeft = &heads.FilesLeft{}
	}
	if h.facts.ParkedUntil > status.NotParked {
		change.ParkedUntil = status.NotParked
	}
	if i.HeadFrom != i.HeadTo || change.FilesLeft != nil {
		if err := s.e.setFacts(ctx, h, change); err != nil {
			return out, s.cutOff(err)
		}
	}
	if err := s.e.reopen(ctx, h); err != nil {
		return out, s.cutOff(err)
	}
	if h.head == i.HeadFrom && h.head != i.HeadTo {
		if err := s.reader.Heads.Move(ctx, h.id, h.head, i.HeadTo); err != nil {
			return out, s.cutOff(err)
		}
		h.head = i.HeadTo
	}
	if err := s.dir.DropIntent(); err != nil {
		return out, err
	}
	return s.e.arrive(ctx, h)
}

// leave returns the fact to record if the files stay while the head moves.
func (s *session) leave(ctx context.Context, i rundir.Intent) *heads.FilesLeft {
	now := s.e.Files().CurrentTree(ctx, s.locked.files(), s.pos.Dir())
	if next := s.undone; next != nil && next.Head == i.HeadTo && next.Last.Files != nil && next.Last.Files.Tree == now {
		return &heads.FilesLeft{} // they belong to the head again
	}
	back := slices.Contains(i.Undone, i.HeadFrom)
	ahead := now != "" && (back || s.left() != nil && s.left().Ahead && len(i.Undone) > 0)
	return &heads.FilesLeft{Head: i.HeadTo, Tree: now, Ahead: ahead}
}

// left returns the files that a user kept when the head moved; nil if the files belong to the head.
func (s *session) left() *heads.FilesLeft {
	if l := s.locked.facts.FilesLeft; l != nil && l.Head == s.locked.head {
		return l
	}
	return nil
}

func (e *Engine) reopen(ctx context.Context, h *lockedThread) error {
	if h.ended == nil {
		return nil
	}
	if err := e.Reader.Heads.Reopen(ctx, *h.ended, e.nowMs()); err != nil {
		return err
	}
	h.ended = nil
	return nil
}

// passed closes the record of a run whose head has moved. Its result must not be adopted if the head returns.
func (s *session) passed() {
	if last := s.record; last.Status.InFlight() {
		last.Status, last.StepHash = rundir.Done, s.locked.head
		_ = s.dir.Write(last)
	}
}

// finish completes an interrupted move.
func (s *session) finish(ctx context.Context) (out protocol.StepOutput, err error) {
	i := s.intent
	if s.facts.Intent == decide.Settled {
		return out, s.dir.DropIntent()
	}
	if _, err := s.e.eachChild(ctx, s.locked, false, s.e.Stop); err != nil {
		return out, err
	}
	if !i.KeepFiles {
		if err := s.e.Files().Restore(ctx, s.locked.files(), s.pos.Dir(), i.TreeFrom, i.TreeTo); err != nil {
			return out, s.cutOff(err)
		}
	}
	return s.moved(ctx, i)
}

// takeBack restores the files from before an intent whose step was never made.
func (s *session) takeBack(ctx context.Context, i rundir.Intent) error {
	if err := s.e.Files().Restore(ctx, s.locked.files(), s.pos.Dir(), i.TreeTo, i.TreeFrom); err != nil {
		return s.cutOff(err)
	}
	if s.left() != nil {
		if err := s.e.setFacts(ctx, s.locked, heads.Facts{FilesLeft: &heads.FilesLeft{}}); err != nil {
			return err
		}
	}
	if s.facts.Run == decide.InFlight && s.facts.Result == decide.NoResult { // before the intent is marked as settled
		if err := s.closeRun(ctx); err != nil {
			return err
		}
	}
	return s.dir.DropIntent()
}

// leaveFiles settles an intent and leaves the files as they are.
func (s *session) leaveFiles(ctx context.Context) (out protocol.StepOutput, err error) {
	if s.facts.Intent == decide.Prepared {
		left := &heads.FilesLeft{Head: s.locked.head, Tree: s.e.Files().CurrentTree(ctx, s.locked.files(), s.pos.Dir())}
		if err := s.e.setFacts(ctx, s.locked, heads.Facts{FilesLeft: left}); err != nil {
			return out, err
		}
		return out, s.dir.DropIntent()
	}
	i := s.intent
	i.KeepFiles = true
	if _, err := s.e.eachChild(ctx, s.locked, false, s.e.Stop); err != nil {
		return out, err
	}
	return s.moved(ctx, i)
}

// attemptsOf returns a copy of the attempt numbers of a thread's children, to be raised.
func attemptsOf(f heads.Facts) map[string]int {
	if f.Attempts == nil {
		return map[string]int{}
	}
	return maps.Clone(f.Attempts)
}

// raise increments the attempt number of a child.
func (e *Engine) raise(ctx context.Context, h *lockedThread, key string) error {
	attempts := attemptsOf(h.facts)
	attempts[key]++
	return e.setFacts(ctx, h, heads.Facts{Attempts: attempts})
}

// Files returns the keeper of the threads' files.
func (e *Engine) Files() worktree.Keeper {
	r := e.Reader
	return worktree.Keeper{
		Env: r.Env, Dirs: r.Dirs, FS: r.FS, Heads: r.Heads, DenyRead: e.Hidden, Config: r.Config, Read: r.Nodes(),
		Warn: e.warn, RunDir: r.RunDir, Grace: e.grace(), Sandbox: e.Sandbox, Lock: e.lockFiles, Show: r.Show,
	}
}

// lockFiles locks a thread for a user who changes its files between steps.
func (e *Engine) lockFiles(ctx context.Context, id string) (worktree.Locked, error) {
	h, err := e.lock(ctx, id)
	if err != nil {
		return worktree.Locked{}, err
	}
	if h.facts, err = e.Reader.Heads.Facts(ctx, id); err != nil {
		h.release()
		return worktree.Locked{}, err
	}
	if e.Reader.CutOff(id) {
		h.release()
		return worktree.Locked{}, fault.New(protocol.CodeFailed, "restoring the files of thread %s was interrupted", id).Because("files-cut-off", "thread", id)
	}
	return worktree.Locked{Thread: h.files(), Release: h.release}, nil
}

// files describes a thread to package worktree.
func (h *lockedThread) files() worktree.Thread {
	return worktree.Thread{ID: h.id, Head: h.head, Ended: h.ended != nil, Facts: h.facts}
}

// keepFiles prepares the snapshot of the attempt's files.
func (a *attempt) keepFiles(ctx context.Context) (err error) {
	a.kept, err = a.e.Files().Before(ctx, worktree.Step{
		Thread: a.locked.files(), Dir: a.pos.Dir(), Last: a.pos.Thread.Last, Restore: a.task.putBack, Known: a.task.known,
		Open: a.task.kept, Previous: a.locked.kept,
		Joins: a.cmd.Name == protocol.JoinAgent && a.pos.Workflow.Roles[a.task.role].Workspace == "",
		Again: a.again(),
	})
	a.locked.kept, a.task.kept = a.kept, nil
	return err
}

// Follow updates the worktree of a thread whose head has moved to the files of its new last step, if it
// contains exactly the files of the head before. If it contains others, or the files are not available,
// Follow does nothing; the next step reports it.
func (e *Engine) Follow(ctx context.Context, id string, was protocol.Hash) error {
	facts, err := e.Reader.Heads.Facts(ctx, id)
	w := facts.Workspace
	if err != nil || w == nil || w.Mode != worktree.InWorktree {
		return err
	}
	if _, err := os.Lstat(w.Root); err != nil {
		return nil //nolint:nilerr // the next step makes it again
	}
	release, err := e.Exclusive(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return err
	}
	before, now := e.Files().WithFiles(ctx, was), e.Files().WithFiles(ctx, head)
	if before == nil || now == nil {
		return nil
	}
	k, err := e.Files().Open(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	return e.Files().Follow(ctx, k, id, before, now)
}
