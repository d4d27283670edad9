//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// writes announces a turn and half of another, waits at a gate, and answers.
func (a *actor) writes(gate string) {
	say := func(line func(protocol.Hash) protocol.TurnLine, t protocol.Turn) {
		b := cas.NewBatch(a.store, time.Now)
		h, err := b.Add(a.ctx, t)
		must(err)
		must(b.Put(a.ctx))
		text, _ := json.Marshal(line(h))
		fmt.Println(string(text))
	}
	say(protocol.NewTurnLine, protocol.Turn{Role: protocol.TurnAssistant, Content: "whole"})
	say(protocol.NewWritingLine, protocol.Turn{Index: 1, Role: protocol.TurnAssistant, Content: "ha"})
	say(protocol.NewWritingLine, protocol.Turn{Index: 1, Role: protocol.TurnAssistant, Content: "half"})
	for !exists(filepath.Join(a.home, gate)) {
		time.Sleep(2 * time.Millisecond)
	}
	a.result(a.answer("ready", nil))
}

func TestAStepInFlightCanBeLookedAt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "!writes:go")
	id := w.start()
	f, err := w.Reader.Flight(ctx, id)
	require.NoError(t, err)
	require.Nil(t, f, "nothing has begun")
	require.Nil(t, w.Reader.LastRun(t.Context(), id))

	cmd := w.engineProcess(id, "!writes:go")
	require.NoError(t, cmd.Start())
	w.eventually("the half turn is announced", func() bool {
		f, err = w.Reader.Flight(ctx, id)
		if err != nil || f == nil || f.Writing == "" {
			return false
		}
		half, err := cas.Read[protocol.Turn](ctx, w.Reader.Store, f.Writing)
		return err == nil && half.Content == "half"
	})
	require.Equal(t, 1, f.Number)
	require.Equal(t, "planner", f.Role)
	require.Equal(t, w.head(id), f.Head)
	require.Len(t, f.Turns, 1)
	busy, err := w.Reader.Busy(ctx, id)
	require.NoError(t, err)
	require.True(t, busy)
	running, err := w.Reader.Running(ctx)
	require.NoError(t, err)
	require.Len(t, running, 1)
	require.Equal(t, cmd.Process.Pid, running[0].Pid)
	run := w.Reader.LastRun(t.Context(), id)
	require.True(t, run.Alive)
	require.True(t, run.Attended)
	require.NotNil(t, run.LastOutputAt)

	w.open("go")
	require.NoError(t, cmd.Wait())
	f, err = w.Reader.Flight(ctx, id)
	require.NoError(t, err)
	require.Nil(t, f)
	require.False(t, w.Reader.LastRun(t.Context(), id).Alive)
	running, err = w.Reader.Running(ctx)
	require.NoError(t, err)
	require.Empty(t, running)
}

func TestProgressReportsWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "!writes:go")
	p := &recorder{}
	w.Events, w.Turns = p.add, true
	w.open("go")
	w.mustStep(w.start(), StepOptions{})
	require.Equal(t, []string{
		"start 1 planner by fake adopted=false", "turn whole", "writing ha", "writing half", "end idle <nil>",
	}, p.events)
}
