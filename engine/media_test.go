//go:build unix

package engine

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads/memheads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
)

// memLocks is a [Locker] in memory.
type memLocks struct {
	mu   sync.Mutex
	held map[string]*memLock
}

type memLock struct {
	locks  *memLocks
	thread string
	who    Holder
}

func (m *memLocks) Lock(_ context.Context, thread string) (Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[thread] != nil {
		return nil, ErrLocked
	}
	if m.held == nil {
		m.held = map[string]*memLock{}
	}
	m.held[thread] = &memLock{locks: m, thread: thread}
	return m.held[thread], nil
}

func (m *memLocks) Held(_ context.Context, thread string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held[thread] != nil
}

func (m *memLocks) Holder(_ context.Context, thread string) (Holder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.held[thread]; l != nil {
		return l.who, nil
	}
	return Holder{}, fs.ErrNotExist
}

func (l *memLock) Note(who Holder) error {
	l.locks.mu.Lock()
	defer l.locks.mu.Unlock()
	l.who = who
	return nil
}

func (l *memLock) Unlock() error {
	l.locks.mu.Lock()
	defer l.locks.mu.Unlock()
	delete(l.locks.held, l.thread)
	return nil
}

func (l *memLock) RemoveAndUnlock() error { return l.Unlock() }

// An engine needs no files for heads and locks: a thread runs, waits for a person,
// ends and is forked on others, with real agents.
func TestOnHeadsAndLocksOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unclear,ready,done")
	locks := &memLocks{}
	w.Heads, w.Locks = &memheads.Heads{}, locks
	ran := 0
	w.Run = func(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
		ran++
		return agentproc.Run(ctx, inv)
	}
	ctx := t.Context()
	id := w.start()
	require.Equal(t, protocol.StatusSuspended, w.mustStep(id, StepOptions{}).Status)
	outs, err := w.Do(ctx, id, Work{Do: DoResume, Prompt: "like this", Steps: UntilEnd})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, outs[len(outs)-1].Status)
	require.Equal(t, 3, ran, "every agent went through the engine's runner")
	require.Empty(t, locks.held)

	fork, err := w.Fork(ctx, w.readStep(w.show(id).Head).Start)
	require.NoError(t, err)
	require.Equal(t, protocol.StatusIdle, w.show(fork).Status)

	held, err := locks.Lock(ctx, fork)
	require.NoError(t, err)
	require.NoError(t, held.Note(Holder{Pid: os.Getpid()}))
	_, err = w.Step(ctx, fork, StepOptions{})
	requireCode(t, err, protocol.CodeLocked, "is being stepped by pid")
	require.NoError(t, held.Unlock())

	_, err = w.Background(ctx, fork, Work{}, nil)
	requireCode(t, err, protocol.CodeFailed, "its locks are no files")
	for _, name := range []string{"threads.yaml", "history.jsonl", "facts.jsonl", "locks"} {
		require.NoFileExists(t, w.Dirs.Home+"/"+name)
	}
}
