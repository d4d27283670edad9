package remotes

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

type index = fileheads.Heads

// published are the heads of a home that move at a remote first: nodes to the remote, its
// head by compare-and-swap with the fence, then the head here. Killed in between, the home
// is behind, and the next pull brings it on.
//
// A step that was made is never given up: if the remote refuses it, or cannot be reached, the
// head moves here anyway, and a [*heads.UnpublishedError] says so. After that, the remote is
// sent nothing more.
type published struct {
	*index
	link  *Link
	lease *lease // of the thread that is worked on

	mu     sync.Mutex
	at     map[string]remote.State // where threads stand at the remote
	broken error
}

// state is where a thread stands at the remote; nil: it is not known there.
func (p *published) state(ctx context.Context, thread string) (*remote.State, error) {
	p.mu.Lock()
	s, known := p.at[thread]
	p.mu.Unlock()
	if known {
		return &s, nil
	}
	s, err := p.link.Remote.Thread(ctx, thread)
	if errors.Is(err, heads.ErrNoThread) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &s, checkState(thread, s)
}

// publish sends what a change of a thread needs, and makes it at the remote.
func (p *published) publish(ctx context.Context, thread string, head cas.Hash, end *heads.Ended, change heads.Facts) error {
	if p.broken != nil {
		return nil // it was said
	}
	was, err := p.state(ctx, thread)
	if err != nil {
		return err
	}
	swap := remote.Swap{Thread: thread, Head: head, Ended: ended(end), Facts: change}
	if was != nil {
		swap.Was, swap.WasEnded = was.Head, was.Ended != nil
	}
	if swap.Was != head {
		if _, _, err := p.link.send(ctx, []cas.Hash{head}, p.link.both(ctx, swap.Was)...); err != nil {
			return err
		}
		if _, err := p.link.sendFiles(ctx, head, swap.Was, change); err != nil {
			return err
		}
	}
	if err := p.swap(ctx, swap); err != nil {
		return err
	}
	p.mu.Lock()
	p.at[thread] = remote.State{Thread: thread, Head: head, Ended: swap.Ended}
	p.mu.Unlock()
	return nil
}

// swap swaps with the fence of the lease. If the lease has ended and nobody else has it, swap
// takes it again and then finds out whether anybody was faster.
func (p *published) swap(ctx context.Context, s remote.Swap) error {
	mine := p.lease != nil && p.lease.thread == s.Thread
	if mine {
		s.Fence = p.lease.current()
	}
	err := p.link.Remote.Swap(ctx, s)
	var fence *remote.FenceError
	if mine && errors.As(err, &fence) && p.lease.again(ctx) == nil {
		s.Fence = p.lease.current()
		err = p.link.Remote.Swap(ctx, s)
	}
	if err == nil {
		return nil
	}
	// We may have done it ourselves, and lost the answer.
	if at, lookErr := p.link.Remote.Thread(ctx, s.Thread); lookErr == nil && at.Head == s.Head && s.Was != s.Head && (at.Ended != nil) == (s.Ended != nil) {
		return nil
	}
	return err
}

// refused handles an error of publish once the head has moved here.
func (p *published) refused(ctx context.Context, thread string, head cas.Hash, err error) error {
	if err == nil || p.broken != nil {
		return nil
	}
	p.broken = p.link.unpublished(context.WithoutCancel(ctx), thread, head, err)
	return &heads.UnpublishedError{Err: p.broken}
}

// unpublished says that what was made stays here, and why.
func (l *Link) unpublished(ctx context.Context, thread string, head cas.Hash, why error) error {
	there, err := l.Remote.Thread(ctx, thread)
	if err == nil {
		facts, _ := l.Heads.Facts(ctx, thread)
		if result, err := l.compare(ctx, heads.Standing{Head: head}, facts, there); err == nil && result == Diverged {
			return l.divergedError(thread, head, there.Head)
		}
	}
	var coded *protocol.Error
	if why = l.of(thread, why); !errors.As(why, &coded) {
		return why
	}
	return &protocol.Error{
		Code:    coded.Code,
		Message: "step " + string(head) + " is made, and is here alone: " + coded.Message,
		Hints:   append([]string{"uwf push " + thread + " " + l.Name + " takes it there, unless somebody was faster"}, coded.Hints...),
		Err:     why,
	}
}

// Move implements [heads.Heads].
func (p *published) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	facts, err := p.index.Facts(ctx, thread)
	if err != nil {
		return err
	}
	said, told := p.link.announced(ctx, thread, new, facts, false)
	if told == nil {
		told = p.publish(ctx, thread, new, nil, said)
	}
	if err := p.index.Move(ctx, thread, old, new); err != nil {
		return err
	}
	if err := p.link.recall(ctx, thread, facts, said); err != nil {
		return err
	}
	return p.arrived(ctx, thread, new, told)
}

// arrived notes where a thread stands at both sides, or says why it does not.
func (p *published) arrived(ctx context.Context, thread string, head protocol.Hash, told error) error {
	if told == nil && p.broken == nil {
		return p.index.SetFacts(ctx, thread, heads.Facts{Remote: p.link.now(head)})
	}
	return p.refused(ctx, thread, head, told)
}

// Archive implements [heads.Heads].
func (p *published) Archive(ctx context.Context, e heads.Ended) error {
	var told error
	if e.Workflow.Valid() {
		told = p.publish(ctx, e.Thread, e.Head, &e, heads.Facts{})
	}
	if err := p.index.Archive(ctx, e); err != nil {
		return err
	}
	return p.refused(ctx, e.Thread, e.Head, told)
}

// AddAll implements [heads.Heads]. It does not add threads that the remote refuses; asking
// again adds them.
func (p *published) AddAll(ctx context.Context, threads []heads.New) error {
	for i, n := range threads {
		if p.broken != nil {
			return p.broken
		}
		said, err := p.link.announced(ctx, n.Thread, n.Hash, n.Facts, false)
		if err == nil {
			err = p.publish(ctx, n.Thread, n.Hash, nil, said)
		}
		if err != nil {
			return p.link.of(n.Thread, err)
		}
		if len(begun(said)) > 0 {
			threads[i].Facts.Repository = said.Repository
		}
	}
	for i, n := range threads {
		threads[i].Facts.Remote = p.link.now(n.Hash)
	}
	return p.index.AddAll(ctx, threads)
}

// SetFacts implements [heads.Heads].
func (p *published) SetFacts(ctx context.Context, thread string, change heads.Facts) error {
	if err := p.index.SetFacts(ctx, thread, change); err != nil {
		return err
	}
	if change = shared(change); reflect.ValueOf(change).IsZero() || p.broken != nil {
		return nil
	}
	was, err := p.state(ctx, thread)
	if err != nil || was == nil {
		return p.link.of(thread, err)
	}
	var end *heads.Ended
	if was.Ended != nil {
		end = &heads.Ended{Workflow: was.Ended.Workflow, Status: was.Ended.Status, CompletedAt: was.Ended.CompletedAt}
	}
	return p.link.of(thread, p.publish(ctx, thread, was.Head, end, change))
}
