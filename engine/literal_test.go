//go:build unix

package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// Missing fields cause an error with a code, never a panic.
func TestWhatAProgramForgetsIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	bare := &Engine{}
	bare.Reader.Store, bare.Reader.Heads, bare.Reader.Dirs = w.Reader.Store, w.Reader.Heads, w.Reader.Dirs
	for name, of := range map[string]func(*Engine) error{
		"do":         func(e *Engine) error { _, err := e.Do(t.Context(), id, Work{}); return err },
		"background": func(e *Engine) error { _, err := e.Background(t.Context(), id, Work{}); return err },
		"start": func(e *Engine) error {
			_, err := e.Start(t.Context(), protocol.Start{Cwd: "/"}, StartOptions{})
			return err
		},
		"stop":    func(e *Engine) error { _, err := e.Stop(t.Context(), id); return err },
		"fork":    func(e *Engine) error { _, err := e.Fork(t.Context(), w.head(id), ForkOptions{}); return err },
		"kill":    func(e *Engine) error { return e.Kill(t.Context(), id) },
		"message": func(e *Engine) error { return e.Message(t.Context(), id, "text") },
		"show":    func(e *Engine) error { _, err := e.Reader.Show(t.Context(), id); return err },
		"actions": func(e *Engine) error { _, err := e.Reader.Actions(t.Context(), id); return err },
		"tick":    func(e *Engine) error { return e.Tick(t.Context(), 1, StepOptions{}, nil) },
		"grant": func(e *Engine) error {
			_, err := e.Grant(t.Context(), id, protocol.Limits{MaxSteps: 1}, More{})
			return err
		},
	} {
		for _, e := range []*Engine{bare, {}} {
			err := of(e)
			require.Error(t, err, name)
			require.Equal(t, protocol.CodeUsage, Code(err), "%s: %v", name, err)
			require.Contains(t, err.Error(), "Env.Now", name)
		}
	}
	require.Equal(t, protocol.Code(""), Code((*protocol.Error)(nil)))
	require.NoError(t, w.Tick(t.Context(), 1, StepOptions{}, nil), "nobody need be told")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var coded *protocol.Error
	require.True(t, errors.As(w.Tick(ended, 1, StepOptions{}, nil), &coded))
}

// The step limit of a start includes later calls. A thread that has reached it is continued with one call.
func TestAStepLimitOfOneThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	_, err := w.Grant(t.Context(), id, protocol.Limits{MaxSteps: 1}, More{})
	require.NoError(t, err)
	outs, err := w.Do(t.Context(), id, Work{})
	require.NoError(t, err)
	at := outs[len(outs)-1]
	require.Equal(t, protocol.StatusSuspended, at.Status)
	require.Nil(t, at.Question)
	runs := w.agentRuns()
	outs, err = w.Do(t.Context(), id, Work{Do: DoContinue})
	require.NoError(t, err)
	require.Greater(t, w.agentRuns(), runs)
	require.NotEmpty(t, outs)
	_, err = w.Start(t.Context(), protocol.Start{Cwd: t.TempDir()}, StartOptions{Limits: protocol.Limits{MaxSteps: -1}})
	requireCode(t, err, protocol.CodeUsage)
}
