//go:build postgres

package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	chainof "github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

const otherThread = "01ARZ3NDEKTSV4RRFFQ69G5FAB"

// TestKilledUpkeep kills each command of an owner at random while helpers, which are killed as well, step a thread.
// The thread stays whole, and each command can be repeated.
func TestKilledUpkeep(t *testing.T) {
	t.Parallel()
	ctx, a, exe := t.Context(), place(), program(t)
	const workers, steps = 2, 40
	chain, other := remotetest.NewChain(t, cas.XXH3, "a task", steps), remotetest.NewChain(t, cas.XXH3, "other", 5)
	r, err := start(ctx, exe, a, 1<<62, syscall.SIGKILL, func() {})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	require.NoError(t, putAll(ctx, chain, r, chain.Heads[1]))
	require.NoError(t, r.Swap(ctx, remote.Swap{Thread: thread, Head: chain.Heads[1]}))
	other.Begin(r, otherThread)
	first, err := chainof.Open(ctx, chain.Store, chain.Heads[1])
	require.NoError(t, err)
	secret := first.Last.Detail
	commands := [][]string{
		{"rm", a.Text, otherThread}, {"gc", a.Text, "--grace", "0s"}, {"fsck", a.Text}, {"stats", a.Text}, {"seal", a.Text, thread},
		{"redact", a.Text, thread, string(secret), "--reason", "a key", "--shared"},
		{"prune", a.Text, "--keep", "1h", "--dry-run"},
	}

	working, done := context.WithCancel(ctx)
	var group, upkeep sync.WaitGroup
	errs := make([]error, workers)
	for i := range errs {
		c := &climber{exe: exe, address: a, chain: chain, random: rand.New(rand.NewPCG(uint64(i), 8))}
		group.Go(func() { errs[i] = c.climb(ctx) })
	}
	killed := 0
	upkeep.Go(func() {
		random := rand.New(rand.NewPCG(9, 9))
		for n := 0; working.Err() == nil; n++ {
			short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(120))*time.Millisecond)
			if exec.CommandContext(short, exe, commands[n%len(commands)]...).Run() != nil {
				killed++
			}
			cancel()
		}
	})
	group.Wait()
	done()
	upkeep.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Positive(t, killed)
	t.Logf("%d commands were killed", killed)

	for _, c := range commands {
		out, err := exec.CommandContext(ctx, exe, c...).Output()
		require.NoError(t, err, "%s: %s", c[0], out)
		require.True(t, json.Valid(out), c[0])
	}
	state, err := r.Thread(ctx, thread)
	require.NoError(t, err)
	require.Equal(t, chain.Head(), state.Head)
	for h, err := range r.Walk(ctx, []cas.Hash{state.Head}, nil) {
		require.NoError(t, err, "%s", h)
	}
	_, err = r.Thread(ctx, otherThread)
	require.ErrorAs(t, err, new(*remote.GoneError))
	missing, err := r.Missing(ctx, []cas.Hash{other.Head(), secret})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{other.Head()}, missing)
	for record, err := range r.Get(ctx, []cas.Hash{secret}) {
		require.NoError(t, err)
		require.True(t, cas.IsTombstone(record.File))
	}
}

// TestUpkeepArguments checks what is rejected, without a database.
func TestUpkeepArguments(t *testing.T) {
	t.Parallel()
	exe := program(t)
	for _, args := range [][]string{
		{"rm"}, {"rm", "postgres://x/y"}, {"gc"}, {"gc", "a", "b"}, {"gc", "a", "--unknown"}, {"redact", "a"}, {"seal", "a"},
		{"gc", "postgres://u:secret@h/d"},
	} {
		out, err := exec.CommandContext(t.Context(), exe, args...).CombinedOutput()
		require.Error(t, err, args)
		require.NotContains(t, string(out), "secret")
		require.NotContains(t, string(out), "panic")
	}
}
