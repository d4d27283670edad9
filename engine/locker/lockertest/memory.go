package lockertest

import (
	"context"
	"io/fs"
	"sync"

	"github.com/united-workforce/uwf/engine/locker"
)

// Memory is an in-memory [locker.Locker] for one process. The zero value is ready to use.
type Memory struct {
	mu   sync.Mutex
	held map[string]*memoryLock
}

type memoryLock struct {
	locks  *Memory
	thread string
	who    locker.Holder
	free   chan struct{} // closed on release
}

// Lock implements [locker.Locker].
func (m *Memory) Lock(ctx context.Context, thread string) (locker.Lock, error) {
	for {
		taken := m.take(thread)
		if taken.locks != nil {
			return taken, nil
		}
		select {
		case <-ctx.Done():
			return nil, locker.ErrLocked
		case <-taken.free:
		}
	}
}

// take takes the lock. If it is taken, take returns the lock to wait for instead.
func (m *Memory) take(thread string) *memoryLock {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.held[thread]; other != nil {
		return &memoryLock{free: other.free}
	}
	if m.held == nil {
		m.held = map[string]*memoryLock{}
	}
	m.held[thread] = &memoryLock{locks: m, thread: thread, free: make(chan struct{})}
	return m.held[thread]
}

// Held implements [locker.Locker].
func (m *Memory) Held(_ context.Context, thread string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held[thread] != nil
}

// Holder implements [locker.Locker].
func (m *Memory) Holder(_ context.Context, thread string) (locker.Holder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.held[thread]; l != nil {
		return l.who, nil
	}
	return locker.Holder{}, fs.ErrNotExist
}

// Note implements [locker.Lock].
func (l *memoryLock) Note(who locker.Holder) error {
	l.locks.mu.Lock()
	defer l.locks.mu.Unlock()
	l.who = who
	return nil
}

// Unlock implements [locker.Lock].
func (l *memoryLock) Unlock() error {
	l.locks.mu.Lock()
	defer l.locks.mu.Unlock()
	delete(l.locks.held, l.thread)
	close(l.free)
	return nil
}

// RemoveAndUnlock implements [locker.Lock].
func (l *memoryLock) RemoveAndUnlock() error { return l.Unlock() }
