package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/bench/loop"
)

// world has the programs and the fixtures that the rows use. Fixtures are created on first use and shared.
type world struct {
	// dir keeps everything until the end, because a file system that has just removed many files may be slow
	// to create others.
	dir  string
	bin  string // the programs to measure
	full bool   // with the large fixtures
	made map[string]any
	next int // next unused number
}

// place is a home with one thread.
type place struct{ home, thread string }

// fixture creates something once.
func fixture[T any](w *world, name string, build func() T) T {
	if known, ok := w.made[name]; ok {
		return known.(T)
	}
	made := build()
	w.made[name] = made
	return made
}

// fresh returns an unused number and reserves n of them.
func (w *world) fresh(n int) int {
	w.next += n
	return w.next - n
}

func (w *world) path(elem ...string) string {
	return filepath.Join(append([]string{w.dir}, elem...)...)
}

func (w *world) program(name string) string { return filepath.Join(w.bin, name) }

// helper builds one of the programs below this package.
func (w *world) helper(b testing.TB, name string) string {
	return fixture(w, "program "+name, func() string {
		path := w.path("helper-" + name)
		build(b, path, "internal/bench/"+name)
		return path
	})
}

// build builds a program of the tree, as make build does.
func build(b testing.TB, path, program string) {
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-o", path, "github.com/united-workforce/uwf/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	run(b, cmd)
}

// command returns a command with no home but this one.
func (w *world) command(b testing.TB, home, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.Context(), program, args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "UWF_HOME="+home, "OCAS_HOME=")
	return cmd
}

// uwf runs uwf in a home and returns its output.
func (w *world) uwf(b testing.TB, home string, args ...string) string {
	return run(b, w.command(b, home, w.program("uwf"), append([]string{"--quiet"}, args...)...))
}

// empty runs a program that does nothing.
func (w *world) empty(b testing.TB) {
	run(b, exec.CommandContext(b.Context(), w.helper(b, "empty")))
}

// run runs a command and returns its stdout.
func run(b testing.TB, cmd *exec.Cmd) string {
	b.Helper()
	out, err := output(cmd)
	require.NoError(b, err)
	return out
}

func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s%s", cmd, err, out, stderr.String())
	}
	return strings.TrimSpace(string(out)), err
}

// file writes a fixture file once.
func (w *world) file(b testing.TB, name, text string) string {
	return fixture(w, "file "+name, func() string {
		require.NoError(b, os.WriteFile(w.path(name), []byte(text), 0o644))
		return w.path(name)
	})
}

// start starts a thread in a home and returns its ID.
func (w *world) start(b testing.TB, home string) string {
	return w.uwf(b, home, "thread", "start", w.file(b, "loop.yaml", loop.Workflow), "-p", "task", "--cwd", w.dir, "--format", "text")
}

// agent returns the command line of an agent that plays a script without delay.
func (w *world) agent(b testing.TB) string {
	return w.program("uwf-mock") + " --mock-data " + w.file(b, "scenario.yaml", `repeat: true
steps:
  - role: worker
    output: "---\n$status: again\nnote: a note\n---\nI did something.\n"
`)
}

// step makes one step.
func (w *world) step(b testing.TB, p place) {
	w.uwf(b, p.home, "thread", "step", p.thread, "--agent", w.agent(b))
}
