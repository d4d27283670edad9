package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/internal/bench/loop"
)

// Exit statuses of uwf that the scenarios distinguish; README.md lists them all.
const (
	exitUsage   = 2
	exitMissing = 3
	exitInvalid = 4
	exitAgent   = 5
	exitWaiting = 6 // suspended
	exitCorrupt = 7
	exitLocked  = 75
	exitTimeout = 124
	exitStopped = 143
)

// world is a home with its store, and the programs that use it.
type world struct {
	dir    string // contains everything
	home   string
	cwd    string // the agents' working directory
	bin    string // contains uwf and the agents
	agent  string // command line of the agent that writes the ledger
	ledger ledger
	env    []string
}

// patience bounds the duration of a command; a longer one counts as hanging.
const patience = 3 * time.Minute

// newWorld creates an empty home in dir.
func newWorld(dir string, tools tools) (*world, error) {
	w := &world{
		dir: dir, home: filepath.Join(dir, "home"), cwd: dir, bin: tools.bin,
		agent:  tools.self + " " + agentPart,
		ledger: ledger{path: filepath.Join(dir, "ledger")},
	}
	w.env = append(tools.env.Environ[:len(tools.env.Environ):len(tools.env.Environ)], "UWF_HOME="+w.home, "OCAS_HOME=", "NO_COLOR=1", ledgerVariable+"="+w.ledger.path)
	for path, text := range map[string]string{w.path("loop.yaml"): loop.Workflow, filepath.Join(w.home, "config.yaml"): "timeout: 10m\n"} {
		if err := write(path, []byte(text)); err != nil {
			return nil, err
		}
	}
	return w, os.WriteFile(w.ledger.path, nil, 0o644)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// ended is the result of a command.
type ended struct {
	Args   []string
	Code   int    // -1 after a signal
	Signal string // name of the signal
	Stdout []byte
	Stderr string
	CPU    time.Duration
	Memory int64 // peak, in bytes
}

// String formats the result for reports.
func (e ended) String() string {
	s := fmt.Sprintf("uwf %s: exit %d %s", strings.Join(e.Args, " "), e.Code, e.Signal)
	return s + "\n  stdout: " + head(string(e.Stdout)) + "\n  stderr: " + head(e.Stderr)
}

func head(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 2000 {
		s = s[:1000] + " […] " + s[len(s)-1000:]
	}
	return s
}

// command prepares a call of uwf.
func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "uwf"), args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.cwd, w.env, 5*time.Second
	return cmd
}

// uwf runs a command. It returns an error if the command hangs or panics, or for an internal error, but not
// for an exit status.
func (w *world) uwf(ctx context.Context, args ...string) (ended, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err := w.run(ctx, (*exec.Cmd).Run, args)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("does not end: %s", e)
	}
	if err != nil {
		return e, err
	}
	return e, e.sane()
}

// run runs a command until it ends or ctx does. Its exit status is not an error.
func (w *world) run(ctx context.Context, through func(*exec.Cmd) error, args []string) (ended, error) {
	cmd := w.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := through(cmd)
	e := ended{Args: args, Stdout: stdout.Bytes(), Stderr: stderr.String()}
	if state := cmd.ProcessState; state != nil { // nil if it was never started
		e.Code = state.ExitCode()
		if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Signal = ws.Signal().String()
		}
		e.CPU, e.Memory = state.UserTime()+state.SystemTime(), peak(state)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil {
		return e, fmt.Errorf("run uwf %v: %w", args, err)
	}
	return e, nil
}

// sane checks conditions for any result, however bad.
func (e *ended) sane() error {
	for _, sign := range []string{"panic:", "goroutine ", "fatal error:"} {
		if strings.Contains(e.Stderr, sign) {
			return fmt.Errorf("crashes: %s", e)
		}
	}
	if e.Code > 0 && len(e.Stderr) == 0 && len(e.Stdout) == 0 {
		return fmt.Errorf("fails without a word: %s", e)
	}
	return nil
}

// must is like uwf for a command that has to succeed; into may be nil.
func (w *world) must(ctx context.Context, into any, args ...string) error {
	e, err := w.uwf(ctx, args...)
	if err != nil {
		return err
	}
	if e.Code != 0 {
		return fmt.Errorf("should succeed: %s", e)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(e.Stdout, into); err != nil {
		return fmt.Errorf("not JSON (%w): %s", err, e)
	}
	return nil
}

// shown is the part of a thread's state that is read.
type shown struct{ Thread, Status, Head string }

func (w *world) show(ctx context.Context, thread string) (s shown, err error) {
	err = w.must(ctx, &s, "thread", "show", thread, "--format", "json")
	return s, err
}

// chain returns a thread's steps.
func (w *world) chain(ctx context.Context, thread string) (hashes []string, err error) {
	var listed struct{ Steps []struct{ Hash string } }
	err = w.must(ctx, &listed, "thread", "steps", thread, "--format", "json")
	for _, s := range listed.Steps {
		hashes = append(hashes, s.Hash)
	}
	return hashes, err
}

// started starts a new thread.
func (w *world) started(ctx context.Context) (string, error) { return w.startedOn(ctx, "task") }

func (w *world) startedOn(ctx context.Context, task string) (string, error) {
	var out struct{ Thread string }
	err := w.must(ctx, &out, "thread", "start", w.path("loop.yaml"), "-p", task, "--cwd", w.cwd)
	return out.Thread, err
}

// stepArgs returns the command line of a step with our agent.
func (w *world) stepArgs(thread string) []string {
	return []string{"thread", "step", thread, "--agent", w.agent}
}
