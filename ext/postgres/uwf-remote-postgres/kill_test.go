//go:build postgres

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
)

const thread = "01ARZ3NDEKTSV4RRFFQ69G5FAA"

// doomed is the stdin or stdout of a program that is killed after a number of bytes.
type doomed struct {
	io.Reader
	io.Writer
	left atomic.Int64
	kill func() error
}

func (d *doomed) Read(b []byte) (int, error)  { return d.count(d.Reader.Read(b)) }
func (d *doomed) Write(b []byte) (int, error) { return d.count(d.Writer.Write(b)) }

func (d *doomed) count(n int, err error) (int, error) {
	if d.left.Add(int64(-n)) < 0 {
		_ = d.kill() // it may be dead already
	}
	return n, err
}

// start starts a helper that gets a signal after that many bytes; then is called after it.
func start(ctx context.Context, exe string, a remote.Address, bytes int64, signal syscall.Signal, then func()) (remote.Remote, error) {
	cmd := exec.CommandContext(ctx, exe, a.Text)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &doomed{Reader: out, Writer: in, kill: func() error {
		defer then()
		return cmd.Process.Signal(signal)
	}}
	d.left.Store(bytes)
	hangUp := func() error {
		_ = in.Close()
		_ = cmd.Process.Kill() // it may be stopped
		_ = cmd.Wait()         // the state is known
		return nil
	}
	return wire.Connect(ctx, d, d, hangUp, wire.Options{Hash: cas.XXH3, Program: "test"})
}

// climber brings a thread from step to step, concurrently with others, with helpers that are killed.
type climber struct {
	exe     string
	address remote.Address
	chain   *remotetest.Chain
	random  *rand.Rand

	acked, unknown, killed int // swaps
}

func (c *climber) climb(ctx context.Context) error {
	for {
		r, err := start(ctx, c.exe, c.address, 200+c.random.Int64N(40_000), syscall.SIGKILL, func() {})
		if err == nil {
			err = c.with(ctx, r)
			_ = r.Close() // it may be closed already
		}
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		var fault *remote.FaultError
		if errors.As(err, &fault) && !strings.Contains(err.Error(), "cut") {
			return err
		}
		c.killed++
	}
}

// with continues until the helper is gone or no step is left.
func (c *climber) with(ctx context.Context, r remote.Remote) error {
	for {
		s, err := r.Thread(ctx, thread)
		if err != nil {
			return err
		}
		at := slices.Index(c.chain.Heads, s.Head)
		if at < 0 {
			return remote.Faultf("%s is no head of the thread", s.Head)
		}
		if at == len(c.chain.Heads)-1 {
			return nil
		}
		next := c.chain.Heads[at+1]
		if err := c.push(ctx, r, next, s.Head); err != nil {
			return err
		}
		err = r.Swap(ctx, remote.Swap{Thread: thread, Was: s.Head, Head: next})
		var conflict *remote.ConflictError
		switch {
		case err == nil:
			c.acked++
		case !errors.As(err, &conflict):
			c.unknown++
			return err
		}
	}
}

func (c *climber) push(ctx context.Context, r remote.Remote, next, was cas.Hash) error {
	var records []remote.Record
	for h, err := range remote.Walk(ctx, c.chain.Store, []cas.Hash{next}, []cas.Hash{was}) {
		if err != nil {
			return err
		}
		n, err := c.chain.Store.Get(ctx, h)
		if err != nil {
			return err
		}
		records = append(records, remote.Record{Hash: h, File: cas.MarshalFile(n)})
	}
	_, err := r.Put(ctx, records)
	return err
}

// TestKilledHelpers kills helpers at random, and crashes the database twice, while a thread takes many steps.
// There must be one complete chain, and no step may be acknowledged twice.
func TestKilledHelpers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := pgtest.Start(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	a := remote.Address{Scheme: "postgres", Text: s.Socket("postgres", "")}
	exe := program(t)
	const workers, steps = 4, 120
	chain := remotetest.NewChain(t, cas.XXH3, "a task", steps)
	whole, err := start(ctx, exe, a, 1<<62, syscall.SIGKILL, func() {})
	require.NoError(t, err)
	t.Cleanup(func() { _ = whole.Close() })
	require.NoError(t, putAll(ctx, chain, whole, chain.Heads[0]))
	require.NoError(t, whole.Swap(ctx, remote.Swap{Thread: thread, Head: chain.Heads[0]}))

	climbers := make([]*climber, workers)
	errs := make([]error, workers+1)
	var group sync.WaitGroup
	for i := range climbers {
		climbers[i] = &climber{exe: exe, address: a, chain: chain, random: rand.New(rand.NewPCG(uint64(i), 7))}
		group.Go(func() { errs[i] = climbers[i].climb(ctx) })
	}
	group.Go(func() { errs[workers] = crash(ctx, s, chain, whole, steps/3, 2*steps/3) })
	group.Wait()
	require.NoError(t, errors.Join(errs...))

	state, err := whole.Thread(ctx, thread)
	require.NoError(t, err)
	require.Equal(t, chain.Head(), state.Head)
	for h, err := range whole.Walk(ctx, []cas.Hash{state.Head}, nil) {
		require.NoError(t, err, "%s", h)
	}
	acked, unknown, killed := 0, 0, 0
	for _, c := range climbers {
		acked, unknown, killed = acked+c.acked, unknown+c.unknown, killed+c.killed
	}
	require.LessOrEqual(t, acked, steps, "no step was made twice")
	require.GreaterOrEqual(t, acked+unknown, steps, "each was made by somebody")
	require.Greater(t, killed, 10)
	t.Logf("%d helpers were killed; of %d steps, %d were told, and of %d swaps nobody knew", killed, steps, acked, unknown)
}

// crash crashes the database when the thread reaches each of the steps.
func crash(ctx context.Context, s *pgtest.Server, chain *remotetest.Chain, r remote.Remote, at ...int) error {
	for _, step := range at {
		for passed := 0; passed < step; {
			state, err := r.Thread(ctx, thread)
			if err != nil {
				return err
			}
			passed = slices.Index(chain.Heads, state.Head)
		}
		if err := errors.Join(s.Halt(syscall.SIGQUIT), s.Run(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func putAll(ctx context.Context, chain *remotetest.Chain, r remote.Remote, head cas.Hash) error {
	c := &climber{chain: chain}
	return c.push(ctx, r, head, "")
}

// TestFrozenHelper checks that a stopped helper doesn't block others: no transaction waits for it.
func TestFrozenHelper(t *testing.T) {
	t.Parallel()
	exe := program(t)
	for _, bytes := range []int64{700, 1500, 2500, 4000, 8000} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, chain := place(), remotetest.NewChain(t, cas.XXH3, "a task", 12)
			other, err := start(ctx, exe, a, 1<<62, syscall.SIGKILL, func() {})
			require.NoError(t, err)
			t.Cleanup(func() { _ = other.Close() })
			require.NoError(t, putAll(ctx, chain, other, chain.Heads[0]))
			require.NoError(t, other.Swap(ctx, remote.Swap{Thread: thread, Head: chain.Heads[0]}))

			frozen := make(chan struct{})
			var once sync.Once
			slow, err := start(ctx, exe, a, bytes, syscall.SIGSTOP, func() { once.Do(func() { close(frozen) }) })
			require.NoError(t, err)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = (&climber{chain: chain}).with(ctx, slow) // the error of a killed helper
			}()
			<-frozen
			c := &climber{chain: chain}
			require.NoError(t, c.with(ctx, other))
			require.Positive(t, c.acked)
			require.NoError(t, slow.Close())
			<-ended
		})
	}
}

// program returns the test binary under the program's name.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	exe := filepath.Join(t.TempDir(), programName)
	require.NoError(t, os.Symlink(self, exe))
	return exe
}

// TestUnknownThread checks the helper's error for an unknown thread.
func TestUnknownThread(t *testing.T) {
	t.Parallel()
	c, err := wire.Dial(t.Context(), wire.Helper{Address: place(), Environ: environ(t), Dir: t.TempDir()}, wire.Options{Hash: cas.XXH3, Program: "test"})
	require.NoError(t, err)
	_, err = c.Thread(t.Context(), thread)
	require.ErrorIs(t, err, heads.ErrNoThread, fmt.Sprint(err))
	require.NoError(t, c.Close())
}
