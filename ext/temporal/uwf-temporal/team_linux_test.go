//go:build temporal

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/ext/temporal/temporaltest"
)

// team is a remote and a Temporal server with their users' files.
type team struct {
	dir     string
	bin     string // the programs under test
	onPath  string // has links to all of them, but a uwf that must not be started
	slots   string // the workers' slots
	server  *temporaltest.Server
	environ []string
}

// newTeam returns a team with a home. Its remote and the data of Temporal are in Postgres, or in a directory
// and SQLite if postgres is nil. The files are written below the team's directory.
func newTeam(t testing.TB, postgres *temporaltest.Postgres, files map[string]string) *team {
	t.Helper()
	w := &team{dir: t.TempDir(), bin: filepath.Join(temporaltest.Root(t), "bin"), slots: memory(t), server: temporaltest.StartOn(t, postgres)}
	w.write(t, map[string]string{
		"home/temporal.yaml": fmt.Sprintf("remote: team\naddress: %s\ndir: %s\nmaxConcurrentSteps: %d\nheartbeatTimeout: 10s\nlease: 10s\nwatch: 200ms\n", w.server.Address, w.slots, slots),
	})
	w.write(t, files)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "UWF_") && !strings.HasPrefix(entry, "OCAS_") {
			w.environ = append(w.environ, entry)
		}
	}
	w.onPath = w.withoutUwf(t)
	w.environ = append(w.environ, "PATH="+w.onPath+":"+os.Getenv("PATH"), "UWF_HOME="+w.path("home"), "TEAM="+w.dir)
	address := w.path("team")
	if postgres != nil {
		address = postgres.Address
	}
	w.run(t, "uwf", "remote", "add", "--trust", "team", address)
	return w
}

// withoutUwf returns a directory with the programs in which uwf only records that it was started: workers
// don't start it.
func (w *team) withoutUwf(t testing.TB) string {
	t.Helper()
	dir, called := t.TempDir(), w.path("uwf-was-called")
	programs, err := os.ReadDir(w.bin)
	require.NoError(t, err)
	for _, p := range programs {
		if p.Name() != "uwf" {
			require.NoError(t, os.Symlink(filepath.Join(w.bin, p.Name()), filepath.Join(dir, p.Name())))
		}
	}
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> '%s'\nexit 1\n", called)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "uwf"), []byte(script), 0o700))
	t.Cleanup(func() { require.NoFileExists(t, called) })
	return dir
}

const slots = 3

// memory returns a directory in memory, as docs/scale-out.md advises: it is only a cache.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "uwf-slots-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func (w *team) path(name string) string { return filepath.Join(w.dir, name) }

func (w *team) write(t testing.TB, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
		require.NoError(t, os.WriteFile(w.path(name), []byte(text), 0o600))
	}
}

// command returns one of our programs, without the test's environment.
func (w *team) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, name), args...)
	cmd.Dir, cmd.Env = w.dir, w.environ
	return cmd
}

// run runs a program, which must succeed, and returns its stdout.
func (w *team) run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	out, err := w.try(name, args...)
	require.NoError(t, err, "%s %v", name, args)
	return out
}

// try runs a program and returns its stdout; the error includes its stderr.
func (w *team) try(name string, args ...string) ([]byte, error) {
	cmd := w.command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, out, stderr.Bytes())
	}
	return out, err
}

// ask runs a program and decodes its JSON output.
func ask[T any](t testing.TB, w *team, name string, args ...string) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(w.run(t, name, append(args, "--format", "json")...), &v))
	return v
}

// machine is a worker that may be killed.
type machine struct {
	team *team
	args []string
	cmd  *exec.Cmd
}

// serve starts a machine that works until the test ends, and then drains.
func (w *team) serve(t testing.TB, args ...string) *machine {
	t.Helper()
	m := &machine{team: w, args: args}
	m.start(t)
	t.Cleanup(func() {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		require.NoError(t, m.cmd.Wait(), "%s", w.log())
	})
	return m
}

func (m *machine) start(t testing.TB) {
	t.Helper()
	m.cmd = m.team.command("uwf-temporal", append([]string{"worker"}, m.args...)...)
	out, err := os.OpenFile(m.team.path("workers.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	m.cmd.Stdout, m.cmd.Stderr = out, out
	require.NoError(t, m.cmd.Start())
}

// log returns the end of the workers' log.
func (w *team) log() string {
	const most = 4000
	text, _ := os.ReadFile(w.path("workers.log"))
	return string(text[max(0, len(text)-most):])
}

// eventually waits until a condition holds.
func (w *team) eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%s; workers: %s", what, w.log())
	}
}
