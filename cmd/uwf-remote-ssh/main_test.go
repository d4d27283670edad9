//go:build !windows

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// The test binary acts as the program, as the ssh that it becomes, and as the uwf at the far end, depending
// on its name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case name:
		main()
	case "ssh":
		ssh()
	case "uwf":
		uwf()
	default:
		os.Exit(prosetest.Run(m))
	}
}

// realConfig is a variable with an ssh config, for which the real ssh is used.
const realConfig = "UWF_TEST_SSH_CONFIG"

// ssh passes the remote command to a shell, as sshd does.
func ssh() {
	args := os.Args[1:]
	if config := os.Getenv(realConfig); config != "" {
		_ = syscall.Exec("/usr/bin/ssh", append([]string{"ssh", "-F", config}, args...), os.Environ())
		os.Exit(255)
	}
	if len(args) > 3 && args[1] == "-o" && args[2] == "ServerAliveInterval=15" {
		args = slices.Delete(args, 1, 3)
	}
	if len(args) > 2 && args[1] == "-p" {
		args = slices.Delete(args, 1, 3)
	}
	if len(args) != 4 || args[0] != "-T" || args[1] != "--" {
		fmt.Fprintln(os.Stderr, "usage: ssh", args)
		os.Exit(255)
	}
	if args[2] == "nowhere" {
		fmt.Fprintln(os.Stderr, "ssh: \x1b[2Jcould not resolve hostname nowhere")
		os.Exit(255)
	}
	if args[2] == "chatty" {
		fmt.Println("Welcome to chatty!")
	}
	_ = syscall.Exec("/bin/sh", []string{"sh", "-c", args[3]}, os.Environ())
	os.Exit(255)
}

// uwf acts as "uwf remote serve PATH".
func uwf() {
	if len(os.Args) != 4 || os.Args[1] != "remote" || os.Args[2] != "serve" {
		os.Exit(2)
	}
	e, err := env.OS()
	if err == nil {
		err = wire.Serve(context.Background(), e.Stdin, e.Stdout, func(ctx context.Context, h wire.Hello) (remote.Remote, error) {
			return storeremote.Open(ctx, os.Args[3], storeremote.Options{Hash: h.Hash, Program: "uwf", Now: time.Now})
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// environ returns an environment in which only the three programs are found.
func environ(t *testing.T) []string { return append(os.Environ(), "PATH="+programs(t)) }

// programs returns a directory with the three programs.
func programs(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	for _, played := range []string{name, "ssh", "uwf"} {
		require.NoError(t, os.Symlink(exe, filepath.Join(bin, played)))
	}
	return bin
}

// Runs the conformance suite over a fake ssh; make test-ssh uses a real one.
func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.RunProgram(t, environ(t), func(t *testing.T) remote.Address {
		a, err := remote.ParseAddress("ssh://me@host:2222"+filepath.Join(t.TempDir(), "a 'team'! $HOME"), "/")
		require.NoError(t, err)
		return a
	})
}

func dial(t *testing.T, address string) error {
	t.Helper()
	a, err := remote.ParseAddress(address, "/")
	require.NoError(t, err)
	c, err := wire.Dial(t.Context(), wire.Helper{Address: a, Environ: environ(t), Dir: t.TempDir()}, wire.Options{Hash: "xxh3"})
	if err == nil {
		err = c.Close()
	}
	return err
}

// The reason why ssh failed is reported without control characters, and so are other obstacles.
func TestFailures(t *testing.T) {
	t.Parallel()
	err := dial(t, "nowhere:/srv/team")
	var ended *wire.HelperError
	require.ErrorAs(t, err, &ended)
	require.ErrorContains(t, err, "could not resolve hostname nowhere")
	require.ErrorContains(t, err, "255")
	require.NotContains(t, err.Error(), "\x1b")

	var wrong *remote.FaultError
	err = dial(t, "chatty:/srv/team")
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "Welcome to chatty!")

	err = dial(t, "ssh://-oProxyCommand=id/x")
	require.ErrorAs(t, err, &ended)
	prosetest.Error(t, err)

	err = dial(t, "host:/proc/self/no/such/directory")
	prosetest.Error(t, err)
	require.False(t, strings.Contains(err.Error(), "\n"))
}
