package agentkit

import "sync"

// beside does work beside its caller: one thing after the other, in order, and
// nothing more once one of them has failed. The zero value is ready. Its methods
// are for one caller at a time.
type beside struct {
	mu      sync.Mutex
	queue   []func() error
	working sync.WaitGroup
	busy    bool
	err     error
}

// mostWaiting is how much may wait to be done: a disk that is slower than an agent
// must not fill the memory.
const mostWaiting = 100

// do has f done. It returns at once, unless too much is waiting already.
func (b *beside) do(f func() error) {
	if b.waiting() >= mostWaiting {
		b.working.Wait()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.queue = append(b.queue, f)
	if !b.busy {
		b.busy = true
		b.working.Go(b.work)
	}
}

func (b *beside) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// work does what there is to do.
func (b *beside) work() {
	for f := b.next(nil); f != nil; {
		f = b.next(f())
	}
}

// next takes the error of what was done, and returns what comes next, nil if
// there is nothing.
func (b *beside) next(err error) func() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.err, b.queue = err, nil
	}
	if len(b.queue) == 0 {
		b.busy = false
		return nil
	}
	f := b.queue[0]
	b.queue = b.queue[1:]
	return f
}

// wait waits until all is done, and returns the error that ended it.
func (b *beside) wait() error {
	b.working.Wait()
	return b.failed()
}

// failed is the error that has ended the work so far, if one has.
func (b *beside) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
