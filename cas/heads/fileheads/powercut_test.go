package fileheads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
	"github.com/united-workforce/uwf/util/sampletest"
)

// TestPowerCut simulates a power cut at every disk operation, with every possible resulting state.
// Acknowledged operations are visible, the one in progress is either done or not, every hash in a file refers
// to complete, valid nodes, and the program continues from there.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), t.TempDir()
	disk := durabletest.NewRecorder(durable.OS(), root)
	w, err := newWorld(ctx, root, disk)
	require.NoError(t, err)

	acknowledged := []moment{{}}
	for i, act := range life() {
		require.NoError(t, act(ctx, w))
		names, err := w.names(ctx)
		require.NoError(t, err)
		nodes, err := w.reachable(ctx, names)
		require.NoError(t, err)
		acknowledged = append(acknowledged, moment{i + 1, len(disk.Ops()), names, nodes})
	}

	ops, seen, left, sample := disk.Ops(), map[string]bool{}, t.TempDir(), sampletest.New(t)
	for n, done := 0, 0; n <= len(ops); n++ {
		for done < len(life()) && acknowledged[done+1].ops <= n {
			done++
		}
		next := acknowledged[min(done+1, len(life()))]
		for outcome := range durabletest.Replay(ops, n) {
			key := fmt.Sprint(done, outcome.Key())
			if seen[key] {
				continue
			}
			seen[key] = true
			if !sample() {
				continue
			}
			dir := filepath.Join(left, strconv.Itoa(len(seen)))
			require.NoError(t, outcome.Write(dir))
			if err := survives(ctx, dir, acknowledged[done], next); err != nil {
				t.Fatalf("cut after %d of %d operations (%s): %v", n, len(ops), outcome.Name, err)
			}
			require.NoError(t, os.RemoveAll(dir))
		}
	}
	require.Greater(t, len(seen), len(ops)/2, "the model allows less than it should")
}

// moment is the time at which an operation was acknowledged.
type moment struct {
	acts  int // of life
	ops   int // disk operations until then
	names map[string]protocol.Hash
	nodes []protocol.Hash // referenced by the names
}

// life returns the operations before the power cut, each acknowledged before the next starts.
func life() []func(context.Context, world) error {
	return []func(context.Context, world) error{
		func(ctx context.Context, w world) error { return w.register(ctx, "w") },
		func(ctx context.Context, w world) error { return w.start(ctx, id("a"), "w") },
		func(ctx context.Context, w world) error { return w.step(ctx, id("a")) },
		func(ctx context.Context, w world) error { return w.entitle(ctx, id("a")) },
		func(ctx context.Context, w world) error { return w.start(ctx, id("b"), "w") },
		func(ctx context.Context, w world) error { return w.end(ctx, id("a")) },
		func(ctx context.Context, w world) error { return w.end(ctx, id("b")) },
		func(ctx context.Context, w world) error { return w.reopen(ctx, id("a")) },
		func(ctx context.Context, w world) error { return w.step(ctx, id("a")) },
		func(ctx context.Context, w world) error { return w.end(ctx, id("a")) },
	}
}

// survives checks the state after a power cut, and repeats the interrupted operation unless it was done.
func survives(ctx context.Context, root string, before, after moment) error {
	w, err := newWorld(ctx, root, unflushed{durable.OS()})
	if err != nil {
		return err
	}
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	switch {
	case maps.Equal(names, after.names):
		return errors.Join(w.hold(ctx, after.nodes), w.goesOn(ctx))
	case !maps.Equal(names, before.names):
		return fmt.Errorf("found %v, want %v or %v", names, before.names, after.names)
	}
	if err := w.hold(ctx, before.nodes); err != nil {
		return err
	}
	if err := life()[before.acts](ctx, w); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	if names, err = w.names(ctx); err != nil {
		return err
	}
	if !maps.Equal(names, after.names) {
		return fmt.Errorf("once more: found %v, want %v", names, after.names)
	}
	return errors.Join(w.hold(ctx, after.nodes), w.goesOn(ctx))
}

// goesOn starts another thread, and checks that no thread counts as imported.
func (w world) goesOn(ctx context.Context) error {
	if err := w.Add(ctx, id("z"), h1, heads.Facts{}); err != nil {
		return err
	}
	all, err := w.AllFacts(ctx)
	for thread, facts := range all {
		if facts.Foreign() {
			err = errors.Join(err, fmt.Errorf("thread %s is foreign: %w", thread, facts.Doubt))
		}
	}
	return err
}

// hold checks that nodes exist and match their hashes.
func (w world) hold(ctx context.Context, nodes []protocol.Hash) error {
	for _, h := range nodes {
		if _, err := w.store.Get(ctx, h); err != nil {
			return err
		}
	}
	return nil
}
