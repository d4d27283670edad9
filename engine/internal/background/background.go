// Package background passes work on a thread to a detached worker process, and waits until the work has
// started. The worker inherits the thread's lock, so it is never free in between.
package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Job is work for a background worker.
type Job struct {
	Env   env.Env
	Given []string // the worker's environment
	Dir   rundir.Dir
	Lock  *durable.Held // lock of the thread
	Work  any           // encoded as JSON
	// Call is the call passed to our own program; its Lock is set here.
	Call     Call
	Patience time.Duration // time that a worker has to end if we must end before its work has started
}

// Argument is the hidden first argument of a program started by its own engine. The second one is a [Call].
const Argument = "__uwf"

// Call is the reason why an engine starts its own program: to work on a thread whose lock it inherits, or to
// send notifications.
type Call struct {
	Home   string  `json:"home"`
	Store  string  `json:"store"`
	Thread string  `json:"thread,omitempty"` // "" to send notifications
	Lock   uintptr `json:"lock,omitempty"`   // descriptor of the thread's lock
	Debug  bool    `json:"debug,omitempty"`  // log decisions
}

// Args returns the program's arguments for the call.
func (c Call) Args() []string {
	text, _ := json.Marshal(c) // strings and numbers always encode
	return []string{Argument, string(text)}
}

// CallOf parses a program's arguments as a call and marks it as received; ok reports whether they are one.
func CallOf(args []string) (c Call, ok bool) {
	if len(args) != 2 || args[0] != Argument || json.Unmarshal([]byte(args[1]), &c) != nil {
		return c, false
	}
	env.TakeCall()
	return c, true
}

// NotCalled returns an error if an engine started this program for a call that its main function doesn't
// handle. Otherwise the program would start itself endlessly.
func NotCalled() error {
	if !env.Called() {
		return nil
	}
	return fault.New(protocol.CodeUsage, "an engine started this program, but its main does not start with Main "+
		"of package engine/host")
}

// ack is a worker's report to the process that started it, one line of JSON on stdout: an agent has started,
// there was nothing to start, or an error occurred.
type ack struct {
	Output  *protocol.StepOutput `json:"output,omitempty"`
	Error   *ackError            `json:"error,omitempty"`
	Reasons []protocol.Reason    `json:"reasons,omitempty"` // reasons of the output's error
}

type ackError struct {
	Code    protocol.Code     `json:"code"`
	Message string            `json:"message"`
	Hints   []string          `json:"hints,omitempty"`
	Reasons []protocol.Reason `json:"reasons,omitempty"`
	// Untrusted is set if the error asks a user to confirm commands.
	Untrusted *trust.UntrustedError `json:"untrusted,omitempty"`
}

// err returns the error that the worker reported.
func (a *ackError) err() error {
	e := &protocol.Error{Code: a.Code, Message: a.Message, Hints: a.Hints, Reasons: a.Reasons}
	if a.Untrusted != nil {
		e.Err = a.Untrusted
	}
	return e
}

// Start starts a worker and waits for its report: the thread's state once the first agent has started, or the
// worker's result if none starts.
func (j Job) Start(ctx context.Context) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if err := NotCalled(); err != nil {
		return none, err
	}
	if j.Env.Exe == "" {
		return none, fault.New(protocol.CodeFailed, "cannot run in the background: the path of this program is "+
			"unknown")
	}
	work, err := json.Marshal(j.Work)
	if err != nil {
		return none, fmt.Errorf("prepare background worker: %w", err)
	}
	if err := j.Dir.PrepareWorker(append(work, '\n')); err != nil {
		return none, err
	}
	reports, report, err := os.Pipe()
	if err != nil {
		return none, fmt.Errorf("start background worker: %w", err)
	}
	defer reports.Close()
	worker, err := j.start(report)
	report.Close() // the worker has its own copy
	if err != nil {
		return none, fmt.Errorf("start background worker: %w", err)
	}
	return j.await(ctx, worker, reports)
}

// inheritedAs returns the descriptor of the first inherited file in a child process.
func inheritedAs(f *os.File) uintptr {
	if runtime.GOOS == "windows" {
		return f.Fd() // handles keep their value
	}
	return 3
}

// start starts our own program with the thread's lock.
func (j Job) start(report *os.File) (*proc.Child, error) {
	log, err := safeopen.OpenFile(j.Dir.File(runfiles.LogFile), os.O_WRONLY|os.O_APPEND, 0, safeopen.NoFollow)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	lock := j.Lock.File()
	j.Call.Lock = inheritedAs(lock)
	return proc.Start(proc.Command{
		Path: j.Env.Exe, Args: j.Call.Args(),
		Dir: j.Env.Dir, Env: append(slices.Clip(j.Given), env.CallMark), Stdout: report, Stderr: log, Inherit: []*os.File{lock}, Session: true,
	})
}

// await waits for the worker's report. If we are asked to end before it arrives, we also end the worker,
// because no important work has started.
func (j Job) await(ctx context.Context, worker *proc.Child, reports io.Reader) (protocol.StepOutput, error) {
	type word struct {
		ack
		err error
	}
	heard := make(chan word, 1)
	go func() {
		var w word
		w.err = json.NewDecoder(reports).Decode(&w.ack)
		heard <- w
	}()
	var none protocol.StepOutput
	select {
	case <-ctx.Done():
		_, err := worker.Wait(ctx, j.Patience)
		return none, err
	case w := <-heard:
		switch {
		case w.err == nil && w.Error != nil:
			return none, w.Error.err()
		case w.err == nil && w.Output != nil:
			if w.Output.Error != nil {
				w.Output.Error.Reasons = w.Reasons
			}
			running := w.Output.Status == protocol.StatusRunning || w.Output.Status == protocol.StatusWaitingForChildren
			if running {
				w.Output.Background = &running
			}
			return *w.Output, nil
		}
	}
	_, _ = worker.Wait(context.WithoutCancel(ctx), 0) // it has ended or is about to
	message := "the background worker exited before its first step"
	if said := agentproc.Tail(j.Dir.File(runfiles.LogFile)); said != "" {
		message += "; the end of its log:\n" + said
	}
	return none, fault.New(protocol.CodeFailed, "%s", message)
}

// Ack sends a worker's single report to the process that started it.
type Ack struct {
	To   io.Writer
	once sync.Once
}

// Outcome reports the thread's state.
func (v *Ack) Outcome(out protocol.StepOutput) {
	a := ack{Output: &out}
	if out.Error != nil {
		a.Reasons = out.Error.Reasons
	}
	v.send(a)
}

// Failed reports why no work has started.
func (v *Ack) Failed(err *protocol.Error) {
	reported := &ackError{Code: err.Code, Message: err.Message, Hints: err.Hints, Reasons: err.Reasons}
	errors.As(err, &reported.Untrusted)
	v.send(ack{Error: reported})
}

func (v *Ack) send(a ack) {
	v.once.Do(func() { _ = json.NewEncoder(v.To).Encode(a) }) // the parent may have been killed
}

// Work reads the work for a worker.
func Work(d rundir.Dir, into any) error {
	data, err := d.ReadFile(runfiles.WorkFile, rundir.MaxWork)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("read the worker's job: %w", err)
	}
	return nil
}
