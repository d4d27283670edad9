package agentkit

import "sync"

// beside does work beside its caller, in order, and nothing more once some of it
// has failed. What has come while it was at work is done at once: to flush many
// files costs hardly more than to flush one. Only work must be set. Its methods are
// for one caller at a time.
type beside[T any] struct {
	work func(list []T) error

	mu      sync.Mutex
	queue   []T
	working sync.WaitGroup
	busy    bool
	err     error
}

// mostWaiting is how much may wait to be done: a disk that is slower than an agent
// must not fill the memory.
const mostWaiting = 100

// do has something done. It returns at once, unless too much is waiting already.
func (b *beside[T]) do(what T) {
	if b.waiting() >= mostWaiting {
		b.working.Wait()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.queue = append(b.queue, what)
	if !b.busy {
		b.busy = true
		b.working.Go(b.all)
	}
}

func (b *beside[T]) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// all does what there is to do.
func (b *beside[T]) all() {
	for list := b.next(nil); len(list) > 0; {
		list = b.next(b.work(list))
	}
}

// next takes the error of what was done, and returns what comes next.
func (b *beside[T]) next(err error) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.err, b.queue = err, nil
	}
	list := b.queue
	b.queue, b.busy = nil, len(list) > 0
	return list
}

// wait waits until all is done, and returns the error that ended it.
func (b *beside[T]) wait() error {
	b.working.Wait()
	return b.failed()
}

// failed is the error that has ended the work so far, if one has.
func (b *beside[T]) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
