package box_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
)

// TestCreates lets uwf-box create its namespaces. On Ubuntu, AppArmor allows that to no other program, so there uwf could
// not start it in namespaces, whatever profile uwf-box has.
func TestCreates(t *testing.T) {
	t.Parallel()
	creates := func(c *proc.Command) { c.Box.Creates = true }
	for script, want := range map[string]struct {
		out    string
		status proc.Status
	}{
		"echo out; exit 3":            {"out\n", proc.Status{Code: 3}},
		"kill -KILL $$":               {"", proc.Status{Code: -1, Signal: "killed"}},
		"grep CapEff /proc/$$/status": {"CapEff:\t0000000000000000\n", proc.Status{}},
		"setsid sleep 1000 & echo":    {"\n", proc.Status{}},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.change = creates
			out, status, _ := s.run(script)
			require.Equal(t, want.out, out)
			require.Equal(t, want.status, status)
			s.change = func(c *proc.Command) {
				creates(c)
				c.Box.Ahead = box.StartAhead(c.Path, s.work, nil, false) // another kind
			}
			again, _, _ := s.run(script)
			require.Equal(t, out, again)
		})
	}
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		s := newSpace(t)
		s.change, s.request.Network = creates, protocol.Network{protocol.NetworkNone}
		out, _, _ := s.run("grep -c : /proc/net/dev")
		require.Equal(t, "1\n", out, "only the loopback device")
	})
}

// TestCreatesEnds ends a program whose uwf-box has created its namespaces: by a signal to its group, and by the death of the
// process that created them.
func TestCreatesEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(child *proc.Child, cancel func()){
		"stopped": func(_ *proc.Child, cancel func()) { cancel() },
		"killed":  func(child *proc.Child, _ func()) { _ = unix.Kill(child.Pid(), unix.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			exe, err := os.Executable()
			require.NoError(t, err)
			if none := box.Probe(exe); none != nil {
				t.Skipf("no namespaces here: %v", none)
			}
			read, write, err := os.Pipe()
			require.NoError(t, err)
			cmd, run, err := s.request.Prepare(exe, proc.Command{
				Path: "/bin/sh", Args: []string{"-c", "trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.01; done"},
				Dir: s.work, Env: s.env(), Stdout: write, Session: true,
			})
			require.NoError(t, err)
			cmd.Box.Creates = true
			child, err := proc.Start(cmd)
			require.NoError(t, err)
			require.NoError(t, write.Close())
			ready := make([]byte, len("ready\n"))
			_, err = io.ReadFull(read, ready)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			end(child, cancel)
			status, err := child.Wait(ctx, time.Minute)
			rest, failed := io.ReadAll(read)
			require.NoError(t, failed)
			if name == "stopped" {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, proc.Status{Code: 7}, status)
				require.Equal(t, "term\n", string(rest))
			} else {
				require.NoError(t, err)
				require.Equal(t, "killed", status.Signal)
				require.Empty(t, strings.TrimSpace(string(rest)))
			}
			cancel()
			_, err = run.End(t.Context())
			require.NoError(t, err)
		})
	}
}
