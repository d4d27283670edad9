package wire_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
)

// serve starts a server in this process and returns a client.
func serve(t testing.TB, r remote.Remote) *wire.Client {
	t.Helper()
	theirs, out := io.Pipe()
	in, answers := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- wire.Serve(context.Background(), theirs, answers, func(context.Context, wire.Hello) (remote.Remote, error) { return r, nil })
		_ = answers.Close()
	}()
	hangUp := func() error {
		_ = out.Close()
		_ = in.Close()
		return nil
	}
	info, err := r.Info(context.Background())
	require.NoError(t, err)
	c, err := wire.Connect(context.Background(), in, out, hangUp, wire.Options{Hash: info.Hash, Program: "test"})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
		r := remotetest.NewDirectory(t, a, time.Now)
		return func(t testing.TB) remote.Remote { return serve(t, r) }
	})
	remotetest.RunUpkeep(t, func(t *testing.T, a cas.Algorithm) (remotetest.Open, remotetest.Upkeep) {
		r := remotetest.NewDirectory(t, a, time.Now)
		return func(t testing.TB) remote.Remote { return serve(t, r) }, r.Upkeep(t)
	})
}
