// Package background hands work on a thread to a detached process, and waits until that has
// begun. The lock of the thread is never free in between: the worker inherits it.
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
	Lock  *durable.Held // of the thread
	Work  any           // encodes as JSON
	// Call is what our own program is started with; its Lock is set.
	Call     Call
	Patience time.Duration // time for a worker to end if we must end before it has begun
}

// Argument is the hidden first argument of a program that an engine of its own has started; the second is
// a [Call].
const Argument = "__uwf"

// Call is what an engine starts its own program for: to work on a thread whose lock it inherits, or to
// send notices.
type Call struct {
	Home   string  `json:"home"`
	Store  string  `json:"store"`
	Thread string  `json:"thread,omitempty"` // "": to send notices
	Lock   uintptr `json:"lock,omitempty"`   // descriptor of the thread's lock
	Debug  bool    `json:"debug,omitempty"`  // decisions are logged
}

// Args are the arguments of the program.
func (c Call) Args() []string {
	text, _ := json.Marshal(c) // texts and numbers always encode
	return []string{Argument, string(text)}
}

// CallOf returns the call that a program's arguments are, and takes it; ok: they are one.
func CallOf(args []string) (c Call, ok bool) {
	if len(args) != 2 || args[0] != Argument || json.Unmarshal([]byte(args[1]), &c) != nil {
		return c, false
	}
	env.TakeCall()
	return c, true
}

// NotCalled returns an error if an engine has started this program for something, and its main does not do
// that: it would start itself without end.
func NotCalled() error {
	if !env.Called() {
		return nil
	}
	return fault.New(protocol.CodeUsage, "an engine has started this program, and its main does not begin with Main of "+
		"package engine/host")
}

// ack is what a worker tells whoever started it, in one line on its stdout: that
// an agent has begun, that there was nothing to begin, or why it could not.
type ack struct {
	Output  *protocol.StepOutput `json:"output,omitempty"`
	Error   *ackError            `json:"error,omitempty"`
	Reasons []protocol.Reason    `json:"reasons,omitempty"` // of the output's error
}

type ackError struct {
	Code    protocol.Code     `json:"code"`
	Message string            `json:"message"`
	Hints   []string          `json:"hints,omitempty"`
	Reasons []protocol.Reason `json:"reasons,omitempty"`
	// Untrusted is the question for a person, if that is the error.
	Untrusted *trust.UntrustedError `json:"untrusted,omitempty"`
}

// err is the error that the worker has told.
func (a *ackError) err() error {
	e := &protocol.Error{Code: a.Code, Message: a.Message, Hints: a.Hints, Reasons: a.Reasons}
	if a.Untrusted != nil {
		e.Err = a.Untrusted
	}
	return e
}

// Start starts a worker and waits for its report: where the thread stands once the first agent
// has begun, or, if none does, what the worker would have returned.
func (j Job) Start(ctx context.Context) (protocol.StepOutput, error) {
	var none protocol.StepOutput
	if err := NotCalled(); err != nil {
		return none, err
	}
	if j.Env.Exe == "" {
		return none, fault.New(protocol.CodeFailed, "the system does not tell where this program is: it cannot be "+
			"started in the background")
	}
	work, err := json.Marshal(j.Work)
	if err != nil {
		return none, fmt.Errorf("prepare a worker: %w", err)
	}
	if err := j.Dir.PrepareWorker(append(work, '\n')); err != nil {
		return none, err
	}
	reports, report, err := os.Pipe()
	if err != nil {
		return none, fmt.Errorf("start a worker: %w", err)
	}
	defer reports.Close()
	worker, err := j.start(report)
	report.Close() // the worker has its own
	if err != nil {
		return none, fmt.Errorf("start a worker: %w", err)
	}
	return j.await(ctx, worker, reports)
}

// inheritedAs is the descriptor that the only inherited file has in a child.
func inheritedAs(f *os.File) uintptr {
	if runtime.GOOS == "windows" {
		return f.Fd() // a handle stays the same
	}
	return 3
}

// start starts our own program, with the thread's lock.
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

// await waits for the worker's report. If we are asked to end before it arrives, we pass that
// on: nothing worth keeping has begun.
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
	_, _ = worker.Wait(context.WithoutCancel(ctx), 0) // it has ended, or is about to
	message := "the background worker ended before its first step"
	if said := agentproc.Tail(j.Dir.File(runfiles.LogFile)); said != "" {
		message += "; its log ends:\n" + said
	}
	return none, fault.New(protocol.CodeFailed, "%s", message)
}

// Voice is how a worker tells whoever started it, once.
type Voice struct {
	To   io.Writer
	once sync.Once
}

// Outcome tells where the thread stands.
func (v *Voice) Outcome(out protocol.StepOutput) {
	a := ack{Output: &out}
	if out.Error != nil {
		a.Reasons = out.Error.Reasons
	}
	v.say(a)
}

// Failed tells why nothing has begun.
func (v *Voice) Failed(err *protocol.Error) {
	reported := &ackError{Code: err.Code, Message: err.Message, Hints: err.Hints, Reasons: err.Reasons}
	errors.As(err, &reported.Untrusted)
	v.say(ack{Error: reported})
}

func (v *Voice) say(a ack) {
	v.once.Do(func() { _ = json.NewEncoder(v.To).Encode(a) }) // a parent that was killed does not listen
}

// Work reads what a worker is to do.
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
