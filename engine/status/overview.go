package status

import (
	"context"
	"errors"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Overview tells how many threads stand. It reads each workflow and the config
// once or twice, takes no lock, and never fails as a whole: a thread that cannot be
// read says so in its item. It is for one listing, not for concurrent use.
type Overview struct {
	readers []*Reader // as many as can work at once; each remembers what it has read
}

// maxReaders bounds how many threads are read at once: more of them would only
// wait for the disk together.
const maxReaders = 8

// Overview returns a new one.
func (r *Reader) Overview() *Overview {
	shared := r.ConfigOnce()
	o := &Overview{readers: make([]*Reader, min(runtime.GOMAXPROCS(0), maxReaders))}
	for i := range o.readers {
		o.readers[i] = shared.Remembering()
	}
	return o
}

// Listed is a thread to tell of: an active one with its head, or one of the history.
type Listed struct {
	Thread string
	Head   protocol.Hash
	Ended  *heads.Ended // nil: it is active
}

// farAhead bounds how many threads are read before the first of them is asked for.
const farAhead = 512

// Standing is where a thread stands: as a listing has it, and as [Reader.Show] does,
// but without the last output.
type Standing struct {
	protocol.ThreadItem
	At    protocol.StepOutput
	Since *int64 // as [Reader.Since]

	can *situation // nil: it waits for no person
}

// Standings yields where threads stand, in their order. It reads several at once, and
// a few ahead of what has been asked for.
func (o *Overview) Standings(ctx context.Context, threads []Listed) iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		known := o.readers[0].knowingAll(ctx).factsOf // once for all
		for _, reader := range o.readers {
			reader.factsOf = known
		}
		for ahead := len(o.readers); len(threads) > 0; ahead = min(2*ahead, farAhead) {
			n := min(ahead, len(threads))
			for _, s := range o.together(ctx, threads[:n]) {
				if !yield(s) {
					return
				}
			}
			threads = threads[n:]
		}
	}
}

// together reads threads with all readers.
func (o *Overview) together(ctx context.Context, threads []Listed) []Standing {
	standings := make([]Standing, len(threads))
	var taken atomic.Int64
	var readers sync.WaitGroup
	for _, reader := range o.readers {
		readers.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(threads)); i = taken.Add(1) - 1 {
				standings[i] = reader.listed(ctx, threads[i])
			}
		})
	}
	readers.Wait()
	return standings
}

func (r *Reader) listed(ctx context.Context, l Listed) Standing {
	if l.Ended != nil {
		out := r.showEnded(ctx, *l.Ended)
		item := itemOf(out)
		item.CompletedAt = &l.Ended.CompletedAt
		if t, err := thread.Open(ctx, r.Nodes(), l.Ended.Head); err == nil { // else only its end is known
			r.about(ctx, &item, t)
		}
		return Standing{ThreadItem: item, At: out, Since: item.CompletedAt}
	}
	out, pos, err := r.showActive(ctx, l.Thread, l.Head)
	item := itemOf(out)
	if err != nil {
		item.Error = err.Error()
	}
	if pos.Thread != nil {
		r.about(ctx, &item, pos.Thread)
	}
	out.Output = nil // it may be large
	s := Standing{ThreadItem: item, At: out, Since: r.since(out, pos.Thread)}
	if needsPerson(out) {
		can := r.situation(ctx, out, pos, nil)
		s.can = &can
	}
	return s
}

// Since is when a thread came to where it stands: with its try at work, its last one, its
// last step, or when it was started.
func (r *Reader) Since(ctx context.Context, at protocol.StepOutput) *int64 {
	t, err := thread.Open(ctx, r.Nodes(), at.Head)
	if err != nil {
		t = nil
	}
	return r.since(at, t)
}

// since is [Reader.Since] of a thread that was read; t is nil if it could not be.
func (r *Reader) since(at protocol.StepOutput, t *thread.Thread) *int64 {
	if at.Status == protocol.StatusError || at.Status == protocol.StatusRunning {
		if last := r.RunDir(at.Thread).Read(); !last.Damaged && last.Thread != "" {
			return &last.StartedAt
		}
	}
	if t != nil && t.Last != nil && t.Last.CompletedAtMs > 0 {
		made := t.Last.CompletedAtMs
		return &made
	}
	return startedAt(at.Thread)
}

// startedAt is when a thread was started, which its id says.
func startedAt(id string) *int64 {
	at, err := threadid.Time(id)
	if err != nil {
		return nil
	}
	ms := at.UnixMilli()
	return &ms
}

// about says what a thread is about, and what it has cost if that has been summed up; if
// that is damaged, it is summed up anew.
func (r *Reader) about(ctx context.Context, item *protocol.ThreadItem, t *thread.Thread) {
	item.Title = protocol.TitleOf(t.Task())
	if t.Last == nil {
		return
	}
	marks, unusable := budget.File{Dir: r.RunDir(item.Thread)}.Kept()
	if at := budget.Find(marks, t.Head, t.Last.Index); at != nil {
		item.Totals = &at.Sums.Totals
	} else if unusable {
		if sum, err := r.Totals(ctx, item.Thread, t.Head); err == nil {
			item.Totals = &sum
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
		item.StatusDisplay += " [suspended]" // the original's words
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

// Due are the threads that can go on now, the oldest first: active ones that nobody works on, that
// wait for nobody, that are not parked and that may work here, and all that have something open:
// a run that nobody has judged, or a change that was cut off. One that has failed waits for a
// person, since what may be tried again has been, and so does one whose last step a person has
// undone, unless a change of it was cut off. With an error for entries that cannot be read it returns the others.
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
		undone, _ := r.Undone(ctx, f, l.Head) // what cannot be read takes nobody back
		// What a parent that has gone another way had asked for is nobody's need.
		return f.Foreign() || undone != nil && !r.CutOff(l.Thread) || f.Parent != nil && at[f.Parent.Thread] != f.Parent.Head
	})
	var due []string
	for item := range r.Overview().Standings(ctx, threads) {
		// One at its end that is active was killed before that was noted, which is its next step.
		if item.Status == protocol.StatusIdle || item.Status.AtEnd() || item.At.Pending ||
			r.CutOff(item.Thread) {
			due = append(due, item.Thread)
		}
	}
	return append(due, r.openEnds(ctx, at)...), damaged
}

// CutOff reports whether a change of a thread was cut off.
func (r *Reader) CutOff(id string) bool { return r.RunDir(id).CutOff() }

// IsOpen reports whether something of a thread is under way at a head, or was cut off.
func (r *Reader) IsOpen(id string, head protocol.Hash) bool {
	last := r.RunDir(id).Read()
	return !last.Missing && last.Unfinished(head) || r.CutOff(id)
}

// openEnds are the ended threads that have something open. Whoever worked on one was killed, and
// has left the file of its lock, which goes with an ended thread otherwise.
func (r *Reader) openEnds(ctx context.Context, active map[string]protocol.Hash) (open []string) {
	entries, _ := os.ReadDir(r.Dirs.Locks()) // without it nothing was left
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

// Undone is the step that was undone last of a thread at a head, if it has not gone on
// since; nil: there is none.
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
