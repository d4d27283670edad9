package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
)

const idA = "01ARZ3NDEKTSV4RRFFQ69G5FAA"

// serving is a helper that can be killed, and its client.
func serving(t *testing.T, program, dir string) (*exec.Cmd, *wire.Client) {
	t.Helper()
	cmd := exec.Command(program, dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c, err := wire.Connect(t.Context(), out, in, func() error { return in.Close() }, wire.Options{Hash: cas.XXH3})
	require.NoError(t, err)
	return cmd, c
}

// After a kill, each thread has its old or its new head, no head refers to missing nodes, and everything
// acknowledged exists.
func TestKilled(t *testing.T) {
	t.Parallel()
	const rounds, steps = 12, 40
	bin := filepath.Dir(filepath.Join(t.TempDir(), "x"))
	exe, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(bin, "uwf-remote-file")
	require.NoError(t, os.Symlink(exe, program))
	dir := filepath.Join(t.TempDir(), "team")
	chain := remotetest.NewChain(t, cas.XXH3, "p", steps)
	done := cas.Hash("") // the last acknowledged head
	next := 0
	for round := range rounds {
		cmd, c := serving(t, program, dir)
		if s, err := c.Thread(t.Context(), idA); err == nil {
			require.Contains(t, []cas.Hash{done, chain.Heads[min(next, steps)]}, s.Head)
			for done != s.Head { // it was done but not acknowledged
				done, next = chain.Heads[next], next+1
			}
		}
		killed := make(chan error, 1)
		begun := make(chan int, steps+1)
		go func() {
			for n := range begun {
				if n == round%4 { // during the next operation
					killed <- cmd.Process.Kill()
					return
				}
			}
		}()
		for n := 0; next <= steps; n++ {
			begun <- n
			if push(t, c, chain, done, chain.Heads[next]) != nil {
				break
			}
			done, next = chain.Heads[next], next+1
		}
		if next > steps {
			next = steps
			_ = cmd.Process.Kill()
		} else {
			require.NoError(t, <-killed)
		}
		close(begun)
		_ = c.Close()
		_ = cmd.Wait() // it was killed
		whole(t, dir)
	}
}

// push pushes one more step to the remote.
func push(t *testing.T, c *wire.Client, chain *remotetest.Chain, was, head cas.Hash) error {
	t.Helper()
	missing, err := c.Missing(t.Context(), chain.All(head))
	if err != nil {
		return err
	}
	var records []remote.Record
	for _, h := range missing {
		records = append(records, chain.Record(h))
	}
	if _, err := c.Put(t.Context(), records); err != nil {
		return err
	}
	return c.Swap(t.Context(), remote.Swap{Thread: idA, Was: was, Head: head})
}

// whole checks that everything reachable from the heads exists.
func whole(t *testing.T, dir string) {
	t.Helper()
	r, err := storeremote.Open(t.Context(), dir, storeremote.Options{Hash: cas.XXH3, Now: time.Now})
	require.NoError(t, err)
	for s, err := range r.Threads(t.Context(), remote.Filter{}) {
		require.NoError(t, err)
		for _, err := range r.Walk(context.Background(), []cas.Hash{s.Head}, nil) {
			require.NoError(t, err)
		}
	}
}
