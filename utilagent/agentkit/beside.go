package agentkit

import "sync"

// beside does work beside its caller: one thing after the other, in order, and
// nothing more once one of them has failed. The zero value is ready. Its methods
// are for one caller at a time.
type beside struct {
	mu      sync.Mutex
	todo    []func() error
	working sync.WaitGroup
	busy    bool
	err     error
}

// do has f done, and returns at once.
func (b *beside) do(f func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.todo = append(b.todo, f)
	if !b.busy {
		b.busy = true
		b.working.Go(b.work)
	}
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
		b.err, b.todo = err, nil
	}
	if len(b.todo) == 0 {
		b.busy = false
		return nil
	}
	f := b.todo[0]
	b.todo = b.todo[1:]
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
