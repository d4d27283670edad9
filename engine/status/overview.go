package status

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// Overview reads the states of many threads for a listing. It reads each workflow and the config once or
// twice, and takes no lock. It never fails as a whole: the item of an unreadable thread holds its error. It
// is not safe for concurrent use.
type Overview struct {
	// Known, if not nil, remembers what follows from heads. It is for showing threads, not for working on them.
	Known *summary.Set
	// Brief means that only list items are needed.
	Brief bool

	readers []*Reader // one per concurrent read; each has its own cache
}

// maxReaders limits the number of concurrent reads. More would only wait for the disk.
const maxReaders = 8

// Overview returns an overview of the home's threads.
func (r *Reader) Overview() *Overview {
	shared := r.ConfigOnce()
	o := &Overview{readers: make([]*Reader, min(runtime.GOMAXPROCS(0), maxReaders))}
	for i := range o.readers {
		o.readers[i] = shared.Remembering()
		o.readers[i].lists, o.readers[i].limitsBy = true, map[protocol.Hash]protocol.Limits{}
	}
	return o
}

// Listed is a thread to list: an active one with its head, or an ended one.
type Listed struct {
	Thread string
	Head   protocol.Hash
	Ended  *heads.Ended // nil if the thread is active
}

// farAhead limits the number of threads that are read ahead.
const farAhead = 512

// ThreadInfo is the state of a thread, both as a list item and as [Reader.Show] returns it, but without the
// last output.
type ThreadInfo struct {
	protocol.ThreadItem
	At    protocol.StepOutput
	Since *int64 // see [Reader.Since]
	Dir   string // where it was started; "" if that cannot be read

	can *situation // nil if it doesn't wait for a person
}

// Threads yields the states of threads, in their order. It reads several at once, and some ahead.
func (o *Overview) Threads(ctx context.Context, threads []Listed) iter.Seq[ThreadInfo] {
	return func(yield func(ThreadInfo) bool) {
		known := o.readers[0].knowingAll(ctx).factsOf // shared by all readers
		ran := o.readers[0].runDirs()
		for _, reader := range o.readers {
			reader.factsOf, reader.ran = known, ran
		}
		all := func(some []ThreadInfo) bool {
			for _, s := range some {
				if !yield(s) {
					return false
				}
			}
			return true
		}
		var batches [2][]ThreadInfo                                                     // one is shown while the other is read
		for ahead := len(o.readers); ahead < farAhead && len(threads) > 0; ahead *= 2 { // perhaps few are wanted
			n := min(ahead, len(threads))
			if batches[0] = o.together(ctx, threads[:n], batches[0]); !all(batches[0]) {
				return
			}
			threads = threads[n:]
		}
		ready, enough := make(chan []ThreadInfo), make(chan struct{})
		go func() {
			defer close(ready)
			for some := range slices.Chunk(threads, farAhead) {
				batches[0], batches[1] = batches[1], o.together(ctx, some, batches[0])
				select {
				case ready <- batches[1]:
				case <-enough:
					return
				}
			}
		}()
		defer func() {
			close(enough)
			for range ready { // wait for the readers
			}
		}()
		for some := range ready {
			if !all(some) {
				return
			}
		}
	}
}

// runDirs returns the threads that have a run directory, or nil if that is unknown.
func (r *Reader) runDirs() map[string]bool {
	entries, err := os.ReadDir(filepath.Dir(r.Dirs.Run("any")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ran := make(map[string]bool, len(entries))
	for _, e := range entries {
		ran[e.Name()] = true
	}
	return ran
}

// together reads threads with all readers. It reuses the memory of earlier.
func (o *Overview) together(ctx context.Context, threads []Listed, earlier []ThreadInfo) []ThreadInfo {
	infos := slices.Grow(earlier[:0], len(threads))[:len(threads)]
	var taken atomic.Int64
	var readers sync.WaitGroup
	for _, reader := range o.readers {
		readers.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(threads)); i = taken.Add(1) - 1 {
				infos[i] = o.info(ctx, reader, threads[i])
			}
		})
	}
	readers.Wait()
	return infos
}

func (o *Overview) info(ctx context.Context, r *Reader, l Listed) ThreadInfo {
	n, known := o.Known.Glance(l.Head)
	ran := o.runStamp(r, l.Thread)
	if r.quiet = ""; known && ran != 0 && ran == n.Ran {
		r.quiet = l.Thread
	}
	if l.Ended != nil {
		out, quiet := r.showEnded(ctx, *l.Ended)
		s := ThreadInfo{ThreadItem: itemOf(out), At: out, Since: &l.Ended.CompletedAt}
		s.CompletedAt = &l.Ended.CompletedAt
		if !known {
			t, err := thread.Open(ctx, r.Nodes(), l.Ended.Head)
			if err != nil {
				return s // only its end is shown
			}
			n = SummaryOf(t, t.Last)
			o.Known.Put(l.Head, n)
		}
		r.about(ctx, &s, n)
		o.settle(n, s, ran, quiet)
		return s
	}
	if known {
		if out, quiet, ok := r.bySummary(ctx, l, n); ok && (o.Brief || !needsPerson(out)) {
			s := ThreadInfo{ThreadItem: itemOf(out), At: out, Since: r.since(out, n.CompletedAt)}
			r.about(ctx, &s, n)
			o.settle(n, s, ran, quiet)
			return s
		}
	}
	r.quiet = ""
	out, pos, err := r.showActive(ctx, l.Thread, l.Head)
	s := ThreadInfo{ThreadItem: itemOf(out), At: out}
	s.At.Output = nil // it may be large
	if err != nil {
		s.Error = err.Error()
	}
	completed := int64(0)
	if pos.Thread != nil {
		n = SummaryOf(pos.Thread, pos.Thread.Last)
		if err == nil && out.Status != protocol.StatusCorrupt {
			n.Next = pos.summary()
		}
		if n.Next != nil || !known {
			o.Known.Put(l.Head, n)
		}
		r.about(ctx, &s, n)
		completed = n.CompletedAt
	}
	s.Since = r.since(out, completed)
	if needsPerson(out) {
		can := r.situation(ctx, out, pos, nil)
		s.can = &can
	}
	return s
}

// runStamp returns when a thread's run directory or its totals changed last; 0 if there is none, or it may change again
// within the same timestamp. Lines are added to files there, which doesn't change it, but a run creates other files before
// and after the first line about its head. Readers add totals.
func (o *Overview) runStamp(r *Reader, id string) int64 {
	const racy = time.Second
	if o.Known == nil || !r.ran[id] {
		return 0
	}
	info, err := os.Lstat(r.Dirs.Run(id))
	if err != nil {
		return 0
	}
	last := info.ModTime()
	if totals, err := os.Lstat(filepath.Join(r.Dirs.Run(id), runfiles.TotalsFile)); err == nil && totals.ModTime().After(last) {
		last = totals.ModTime()
	}
	if r.Env.Now().Sub(last) < racy {
		return 0
	}
	return last.UnixNano()
}

// settle remembers that a run directory has nothing to add to a head, apart from the sums, until it changes.
func (o *Overview) settle(n summary.Node, s ThreadInfo, ran int64, quiet bool) {
	if !quiet || ran == 0 || ran == n.Ran {
		return
	}
	if n, known := o.Known.Get(s.Head); known {
		n.Ran, n.Totals = ran, s.Totals
		o.Known.Put(s.Head, n)
	}
}

// SummaryOf returns what can be remembered of a step of a thread, or of its start if step is nil, without the decision.
func SummaryOf(t *thread.Thread, step *thread.Step) summary.Node {
	n := summary.Node{Workflow: t.Start.Workflow, Title: protocol.TitleOf(t.Task()), Dir: t.Start.Cwd}
	if step != nil {
		n.Steps, n.CompletedAt = step.Index+1, step.CompletedAtMs
		n.Step, n.Partial = &step.Step, len(step.Tries)+len(step.Children) > 0
	}
	return n
}

// summary returns the decision if it follows from the head alone, which [Reader.bySummary] then returns.
func (p *Position) summary() *summary.Next {
	if p.Problem != nil || p.Lifted || p.Again || p.UsedUp != "" || p.heldBy != nil ||
		p.Next.Cause == moderator.ByLimit || p.Next.Cause == moderator.ByBudget || p.Next.Kind == moderator.Fan {
		return nil
	}
	next := &summary.Next{Status: protocol.StatusIdle, Role: p.Next.Role, Counted: p.State.Steps}
	switch {
	case p.Next.Kind == moderator.End && p.Next.Failed:
		next.Status = protocol.StatusFailed
	case p.Next.Kind == moderator.End:
		next.Status = protocol.StatusCompleted
	case p.Next.Kind == moderator.Suspend:
		next.Status = protocol.StatusSuspended
	}
	if last := p.Thread.Last; last != nil {
		for _, n := range last.Visits {
			next.Visits = max(next.Visits, n)
		}
	}
	return next
}

// bySummary returns the state of an active thread by what is known of its head, without questions and messages, and
// whether the run directory has nothing to add. ok is false if it depends on more, or if a limit may be reached.
func (r *Reader) bySummary(ctx context.Context, l Listed, n summary.Node) (out protocol.StepOutput, quiet, ok bool) {
	facts, err := r.facts(ctx, l.Thread)
	if n.Next == nil || err != nil || facts.Parent != nil || facts.Limits != nil || len(facts.Attempts) > 0 ||
		isParked(facts, l.Head) {
		return out, false, false
	}
	w, err := r.Workflow(ctx, n.Workflow)
	if err != nil {
		return out, false, false
	}
	most, known := r.limitsBy[n.Workflow]
	if !known {
		if most, err = r.workflowLimits(ctx, w); err != nil {
			return out, false, false
		}
		r.limitsBy[n.Workflow] = most
	}
	if budget.Bounded(most) || most.MaxSteps > 0 && n.Next.Counted >= most.MaxSteps ||
		most.MaxVisitsPerRole > 0 && n.Next.Visits >= most.MaxVisitsPerRole {
		return out, false, false
	}
	out = protocol.StepOutput{Thread: l.Thread, Head: l.Head, Status: n.Next.Status, Workflow: n.Workflow,
		WorkflowName: w.Name}
	if role := protocol.NullString(n.Next.Role); out.Status == protocol.StatusSuspended {
		out.SuspendedRole = role
	} else if out.Status == protocol.StatusIdle {
		out.CurrentRole = role
	}
	quiet = r.overlay(ctx, &out)
	return out, quiet, true
}

// Since returns when a thread entered its state: the start of its current or last try, its last step, or its
// own start. It is in Unix milliseconds.
func (r *Reader) Since(ctx context.Context, at protocol.StepOutput) *int64 {
	t, err := thread.Open(ctx, r.Nodes(), at.Head)
	if err != nil || t.Last == nil {
		return r.since(at, 0)
	}
	return r.since(at, t.Last.CompletedAtMs)
}

// since is like [Reader.Since] for a thread whose last step was completed at a time; 0 if that is unknown.
func (r *Reader) since(at protocol.StepOutput, completed int64) *int64 {
	if at.Status == protocol.StatusError || at.Status == protocol.StatusRunning {
		if last := r.RunDir(at.Thread).Read(); !last.Damaged && last.Thread != "" {
			return &last.StartedAt
		}
	}
	if completed > 0 {
		return &completed
	}
	return startedAt(at.Thread)
}

// startedAt returns the start time in a thread's ID.
func startedAt(id string) *int64 {
	at, err := threadid.Time(id)
	if err != nil {
		return nil
	}
	ms := at.UnixMilli()
	return &ms
}

// about sets the title, the directory and the saved cost of a thread. Damaged sums are computed again.
func (r *Reader) about(ctx context.Context, s *ThreadInfo, n summary.Node) {
	s.Title, s.Dir = n.Title, n.Dir
	if s.Thread == r.quiet { // n.Totals can be of another thread, because forks share heads
		s.Totals = n.Totals
	}
	if n.Steps == 0 || r.nothingToAdd(s.Thread) {
		return
	}
	marks, unusable := budget.File{Dir: r.RunDir(s.Thread)}.Kept()
	if at := budget.Find(marks, s.Head, n.Steps-1); at != nil {
		s.Totals = &at.Sums.Totals
	} else if unusable {
		if sum, err := r.Totals(ctx, s.Thread, s.Head); err == nil {
			s.Totals = &sum
		}
	}
}

func itemOf(out protocol.StepOutput) protocol.ThreadItem {
	item := protocol.ThreadItem{
		Thread: out.Thread, Workflow: out.Workflow, Head: out.Head,
		Status: out.Status, StatusDisplay: string(out.Status), CurrentRole: out.CurrentRole,
	}
	item.RateLimitedUntil, item.SuspendedRole = out.RateLimitedUntil, out.SuspendedRole
	if out.Status == protocol.StatusSuspended {
		item.StatusDisplay += " [suspended]" // as in the original uwf
	}
	if out.WorkflowName != "" {
		item.WorkflowName = protocol.NullString(out.WorkflowName)
	}
	item.StartedAt = startedAt(out.Thread)
	if out.Error != nil {
		item.Error = out.Error.Message
	}
	return item
}

// Due returns the threads that can continue now, oldest first. These are active threads that are not being
// worked on, wait for nothing, are not rate-limited and may run here, and all threads with unfinished work: a
// run whose result was not checked, or an interrupted change. A failed thread is not due, because its retries
// are exhausted. A thread whose last step was undone is not due either, unless a change was interrupted. If
// entries are unreadable, Due returns an error and the other threads.
func (r *Reader) Due(ctx context.Context) ([]string, error) {
	facts, damaged := r.Heads.AllFacts(ctx)
	at := map[string]protocol.Hash{}
	var threads []Listed
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		at[h.Thread] = h.Hash
		threads = append(threads, Listed{Thread: h.Thread, Head: h.Hash})
	}
	threads = slices.DeleteFunc(threads, func(l Listed) bool {
		f := facts[l.Thread]
		undone, _ := r.Undone(ctx, f, l.Head) // ignore undone steps that are unreadable
		// A child is obsolete if its parent has moved.
		return f.Foreign() || undone != nil && !r.CutOff(l.Thread) || f.Parent != nil && at[f.Parent.Thread] != f.Parent.Head
	})
	var due []string
	for item := range r.Overview().Threads(ctx, threads) {
		// An active thread at its end was interrupted before it was archived, which is its next step.
		if item.Status == protocol.StatusIdle || item.Status.AtEnd() || item.At.Pending ||
			r.CutOff(item.Thread) {
			due = append(due, item.Thread)
		}
	}
	return append(due, r.openEnds(ctx, at)...), damaged
}

// CutOff reports whether a change of a thread was interrupted.
func (r *Reader) CutOff(id string) bool { return r.RunDir(id).CutOff() }

// IsOpen reports whether a thread has work in progress at head, or an interrupted change.
func (r *Reader) IsOpen(id string, head protocol.Hash) bool {
	last := r.RunDir(id).Read()
	return !last.Missing && last.Unfinished(head) || r.CutOff(id)
}

// openEnds returns the ended threads with unfinished work. A process that was killed while it worked on one
// left its lock file, which is normally removed when a thread ends.
func (r *Reader) openEnds(ctx context.Context, active map[string]protocol.Hash) (open []string) {
	entries, _ := os.ReadDir(r.Dirs.Locks()) // if it is unreadable, there is nothing to find
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), ".lock")
		if !is || active[id] != "" || CheckID(id) != nil {
			continue
		}
		head, ended, err := r.Lookup(ctx, id)
		if err != nil || ended == nil || ended.Status == protocol.StatusCancelled {
			continue
		}
		if dir := r.RunDir(id); r.IsOpen(id, head) && !dir.Alive(dir.Read()) {
			open = append(open, id)
		}
	}
	return open
}

// Undone returns the thread at the step that was undone last, or nil if there is none or the thread has moved
// since.
func (r *Reader) Undone(ctx context.Context, facts heads.Facts, head protocol.Hash) (*thread.Thread, error) {
	if len(facts.Undone) == 0 {
		return nil, nil
	}
	t, err := thread.Open(ctx, r.Nodes(), facts.Undone[0])
	if err != nil {
		return nil, err
	}
	before := t.StartHash
	if t.Last != nil && t.Last.Prev != nil {
		before = *t.Last.Prev
	}
	if t.Last == nil || before != head {
		return nil, nil
	}
	return t, nil
}
