//go:build unix

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/bench/loop"
)

// peopleRows measure the configuration that people use: Claude Code's adapter with a program that answers at once, in
// a sandbox, with a config.yaml of 1 kB, in a git repository with snapshots.
func (w *world) peopleRows() []row {
	size := func(name string) side {
		return func(b testing.TB) float64 {
			info, err := os.Stat(w.program(name))
			require.NoError(b, err)
			return float64(info.Size()) / 1e6
		}
	}
	megabytes := func(r row) row {
		r.unit = "MB"
		return r
	}
	return []row{
		versus("people/step of an adapter, sandboxed, config, 2,000 files", timed(w.adapterStep(2_000)), 2,
			"the program and two git status", timed(w.withoutUwf(2_000))),
		versus("people/step of an adapter, 20,000 files", timed(w.adapterStep(20_000)), 1.5, "2,000 files", timed(w.adapterStep(2_000))),
		versus("people/step of an adapter, 400 more processes", w.beside(400, timed(w.adapterStep(2_000))), 1.1,
			"without them", timed(w.adapterStep(2_000))),
		versus("people/processor time of a step, no-op agent", processor(w.stepOf(w.chain, 10)), 4,
			"2 empty programs, same flushes", processor(w.floor)),
		versus("people/step of a run, command role, sandboxed", w.commandRun("auto"), 1.6, "mode none", w.commandRun("none")),
		megabytes(versus("people/size of uwf", size("uwf"), 1, "20 MB", constant(20))),
		megabytes(versus("people/size of uwf-claude-code", size("uwf-claude-code"), 1, "8 MB", constant(8))),
	}
}

// busy returns a home with a thread of an adapter in a repository of n files.
func (w *world) busy(b testing.TB, n int) place {
	return fixture(w, fmt.Sprint("people-", n), func() place {
		p := place{home: w.path(fmt.Sprint("people-", n))}
		dir := w.checkout(n)
		for i := range n {
			at := filepath.Join(dir, fmt.Sprint("d", i/10))
			require.NoError(b, os.MkdirAll(at, 0o755))
			require.NoError(b, os.WriteFile(filepath.Join(at, fmt.Sprint("f", i)), fmt.Append(nil, i, "\n"), 0o644))
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u", "commit", "-qm", "files"}} {
			git := w.command(b, p.home, "git", args...)
			git.Dir = dir
			run(b, git)
		}
		var config strings.Builder
		config.WriteString("defaultAgent: claude\nagents:\n  claude: {command: uwf-claude-code}\n")
		for i := range 15 {
			fmt.Fprintf(&config, "  other%d: {command: uwf-exec, args: [\"program --with some --arguments\"]}\n", i)
		}
		require.NoError(b, os.MkdirAll(p.home, 0o700))
		require.NoError(b, os.WriteFile(filepath.Join(p.home, "config.yaml"), []byte(config.String()), 0o600))
		p.thread = w.uwf(b, p.home, "thread", "start", w.file(b, "loop.yaml", loop.Workflow), "-p", "task", "--cwd", dir, "--format", "text")
		for range 2 { // the second looks at files that are no longer new
			time.Sleep(time.Second)
			w.adapted(b, p)
		}
		return p
	})
}

func (w *world) checkout(n int) string { return w.path(fmt.Sprint("repository-", n)) }

// adapted makes a step in which the adapter finds the program of this package.
func (w *world) adapted(b testing.TB, p place) {
	cmd := w.command(b, p.home, w.program("uwf"), "--quiet", "thread", "step", p.thread)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(w.claude(b))+":"+w.bin+":"+os.Getenv("PATH"))
	run(b, cmd)
}

// claude returns the program that answers at once, alone in its directory.
func (w *world) claude(b testing.TB) string {
	return fixture(w, "claude", func() string {
		path := w.path("programs", "claude")
		build(b, path, "internal/bench/claude")
		return path
	})
}

func (w *world) adapterStep(n int) func(testing.TB) {
	return func(b testing.TB) { w.adapted(b, w.busy(b, n)) }
}

// withoutUwf does the work of a step without uwf.
func (w *world) withoutUwf(n int) func(testing.TB) {
	return func(b testing.TB) {
		w.busy(b, n)
		run(b, exec.CommandContext(b.Context(), w.claude(b), "--input-format"))
		for range 2 {
			status := exec.CommandContext(b.Context(), "git", "status", "--porcelain")
			status.Dir = w.checkout(n)
			run(b, status)
		}
		require.NoError(b, w.flushes())
	}
}

// beside measures a side while n other processes sleep.
func (w *world) beside(n int, s side) side {
	return func(b testing.TB) float64 {
		var all []*exec.Cmd
		for range n {
			cmd := exec.Command("sleep", "600")
			require.NoError(b, cmd.Start())
			all = append(all, cmd)
		}
		cost := s(b)
		for _, cmd := range all {
			require.NoError(b, cmd.Process.Kill())
			_ = cmd.Wait()
		}
		return cost
	}
}

// commandRun measures a step of a run of 20 commands, in ms.
func (w *world) commandRun(mode string) side {
	const steps = 20
	return func(b testing.TB) float64 {
		home := w.path("command-" + mode)
		file := w.file(b, "run.yaml", fmt.Sprintf(`name: run
description: Runs a command again and again.
limits: { maxSteps: %d }
roles: { go: { description: Goes., run: [%q] } }
graph: { $START: { _: go }, go: { passed: go, failed: $END } }
`, steps, w.helper(b, "empty")))
		fixture(w, home, func() bool { w.uwf(b, home, "config", "set", "commands.sandbox.mode", mode); return true })
		return timed(func(b testing.TB) { // it suspends at its limit
			_ = w.command(b, home, w.program("uwf"), "--quiet", "run", file, "-p", "task").Run()
		})(b) / steps
	}
}

// processor returns a side that measures the processor time of f's programs, in ms.
func processor(f func(b testing.TB)) side {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return func(b testing.TB) float64 {
		before := used()
		f(b)
		return float64((used() - before).Microseconds()) / 1000
	}
}
