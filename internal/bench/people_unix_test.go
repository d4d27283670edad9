//go:build unix

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
			theFloor, w.floorProcessor),
		versus("people/step of a run, command role, sandboxed, 2,000 files", w.commandRun("auto", w.inRepository), 1.6, "mode none", w.commandRun("none", w.inRepository)),
		w.daguRow("command role, sandboxed", w.commandRun("auto", w.inPlain), 1.6),
		w.daguRow("command role, mode none", w.commandRun("none", w.inPlain), 0.95),
		w.daguRow("no-op agent", w.agentRun, 1.3),
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

// inRepository and inPlain return the directories in which runs work.
func (w *world) inRepository(b testing.TB) string { w.busy(b, 2_000); return w.checkout(2_000) }

func (w *world) inPlain(b testing.TB) string {
	require.NoError(b, os.MkdirAll(w.path("plain"), 0o755))
	return w.path("plain")
}

// marginal measures a step of a run, without the start of the run, in ms.
func (w *world) marginal(run func(b testing.TB, steps int)) side {
	const more = 20
	of := func(steps int) side { return timed(func(b testing.TB) { run(b, steps) }) }
	return func(b testing.TB) float64 { return (of(1+more)(b) - of(1)(b)) / more }
}

// limited runs a workflow until it suspends at its limit of steps.
func (w *world) limited(b testing.TB, home, dir, name, text string, steps int, args ...string) {
	file := w.path(fmt.Sprint(name, "-", steps), name+".yaml")
	fixture(w, "file "+file, func() bool {
		require.NoError(b, os.MkdirAll(filepath.Dir(file), 0o755))
		text = regexp.MustCompile("(?m)^limits: .*").ReplaceAllString(text, fmt.Sprintf("limits: { maxSteps: %d }", steps))
		require.NoError(b, os.WriteFile(file, []byte(text), 0o644))
		return true
	})
	cmd := w.command(b, home, w.program("uwf"), append([]string{"--quiet", "run", file, "-p", "task"}, args...)...)
	cmd.Dir = dir
	out, _ := cmd.Output() // its exit status says that it is suspended
	require.Contains(b, string(out), `"status":"suspended"`)
}

// commandRun measures a step of a run of commands.
func (w *world) commandRun(mode string, in func(testing.TB) string) side {
	return w.marginal(func(b testing.TB, steps int) {
		home := w.path("command-" + mode)
		fixture(w, home, func() bool { w.uwf(b, home, "config", "set", "commands.sandbox.mode", mode); return true })
		w.limited(b, home, in(b), "run", fmt.Sprintf(`name: run
description: Runs a command again and again.
limits: {}
roles: { go: { description: Goes., run: [%q] } }
graph: { $START: { _: go }, go: { passed: go, failed: $END } }
`, w.helper(b, "empty")), steps)
	})
}

// agentRun measures a step of a run of the no-op agent.
func (w *world) agentRun(b testing.TB) float64 {
	return w.marginal(func(b testing.TB, steps int) {
		w.limited(b, w.path("run"), w.inPlain(b), "loop", loop.Workflow, steps, "--agent", w.agent(b))
	})(b)
}

// daguRow compares a step of a run with one of Dagu, in a directory without a repository.
func (w *world) daguRow(name string, subject side, promise float64) row {
	r := versus("people/step of a run, "+name+", against Dagu", subject, promise, "a step of Dagu", w.marginal(w.daguRun))
	if *dagu == "" {
		r.missing = "Dagu is not given: -dagu PATH"
	}
	return r
}

func (w *world) daguRun(b testing.TB, steps int) {
	text := "type: chain\nsteps:\n"
	for i := range steps {
		text += fmt.Sprintf("  - name: s%d\n    command: %s\n", i, w.helper(b, "empty"))
	}
	cmd := w.command(b, w.dir, *dagu, "start", w.file(b, fmt.Sprintf("dagu-%d.yaml", steps), text))
	cmd.Env = append(cmd.Env, "DAGU_HOME="+w.path("dagu"))
	run(b, cmd)
}

// processor returns a side that measures the processor time of f's programs, in ms.
func processor(f func(b testing.TB)) side {
	return func(b testing.TB) float64 {
		before := processorTime(syscall.RUSAGE_CHILDREN)
		f(b)
		return milliseconds(processorTime(syscall.RUSAGE_CHILDREN) - before)
	}
}

// floorProcessor measures the processor time of the floor, in ms: of its programs, and of this process while it
// flushes files.
func (w *world) floorProcessor(b testing.TB) float64 {
	programs := processor(func(b testing.TB) { w.empty(b); w.empty(b) })(b)
	before := processorTime(syscall.RUSAGE_SELF)
	require.NoError(b, w.flushed(12))
	return programs + milliseconds(processorTime(syscall.RUSAGE_SELF)-before)
}

// processorTime returns the processor time that this process has used, or its ended children.
func processorTime(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
