//go:build postgres

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

var server *pgtest.Server

// The test binary acts as the program if called under its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		main()
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	var err error
	if server, err = pgtest.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

var schemas atomic.Int64

// place returns the address of an unused schema.
func place() remote.Address {
	return remote.Address{Scheme: "postgres", Text: server.Socket("postgres", fmt.Sprintf("&schema=s%d", schemas.Add(1)))}
}

// environ returns an environment in which the program is found.
func environ(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, programName)))
	return append(os.Environ(), "PATH="+bin)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.RunProgram(t, environ(t), func(t *testing.T) remote.Address { return place() })
}
