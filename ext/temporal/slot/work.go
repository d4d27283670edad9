package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Argument is the hidden first argument of a process in a slot. The second one is a [Task].
const Argument = "__slot"

// Task is the task of a process in a slot's home, for one thread at a remote.
type Task struct {
	Do     Do            `json:"do"`
	Thread string        `json:"thread"`
	Remote string        `json:"remote"`
	Lease  time.Duration `json:"lease,omitempty"` // 0 means the default
	Expect protocol.Hash `json:"expect,omitempty"`
}

// Do is the kind of a task.
type Do string

// Kinds of tasks.
const (
	DoStep Do = "step" // take the lease, pull, make a step, push
	DoShow Do = "show" // show the state of the thread at the remote
	DoPush Do = "push" // push a step made here
)

// Answer is the output of a process.
type Answer struct {
	Out   protocol.RunOutput `json:"out"`
	Error *Problem           `json:"error,omitempty"`
}

// Problem is an error of a task.
type Problem struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
	Machine bool          `json:"machine,omitempty"`
}

// Work runs the task in the process's arguments. called is false if they don't contain one.
func Work(ctx context.Context, process env.Env) (status int, called bool) {
	if len(process.Args) != 2 || process.Args[0] != Argument {
		return 0, false
	}
	var t Task
	var a Answer
	err := json.Unmarshal([]byte(process.Args[1]), &t)
	if process.Args = nil; err == nil {
		a.Out, err = t.do(ctx, process)
	}
	if err != nil {
		a.Error = &Problem{Code: protocol.CodeFailed, Message: err.Error(), Machine: protocol.OfMachine(err)}
		if coded := (*protocol.Error)(nil); errors.As(err, &coded) {
			a.Error.Code = coded.Code
		}
		status = a.Error.Code.ExitCode()
	}
	if err := json.NewEncoder(process.Stdout).Encode(a); err != nil {
		return protocol.CodeOutputFailed.ExitCode(), true
	}
	return status, true
}

func (t Task) do(ctx context.Context, process env.Env) (out protocol.RunOutput, err error) {
	warn := func(text string) { fmt.Fprintln(process.Stderr, "warning:", plaintext.Line(text)) }
	e, err := host.Open(ctx, process, host.Options{Events: func(ev engine.Event) {
		if ev.Kind == engine.Warning {
			warn(ev.Text)
		}
	}})
	if err != nil {
		return out, err
	}
	o := remotes.OpenOptions{Program: "uwf-temporal " + cmdline.Version(), Warn: warn}
	link, done, err := remotes.Open(ctx, e, process, t.Remote, o)
	if err != nil {
		return out, err
	}
	defer done()
	switch t.Do {
	case DoShow:
		view, err := link.ViewOf(ctx, t.Thread)
		if err == nil {
			out.StepOutput, err = view.Reader.Show(ctx, t.Thread)
		}
		return out, err
	case DoPush:
		_, err := link.Push(ctx, []string{t.Thread}, remotes.PushOptions{})
		return out, err
	}
	return t.step(ctx, link, process.Dir)
}

// step makes a step of the thread in a directory.
func (t Task) step(ctx context.Context, link *remotes.Link, dir string) (out protocol.RunOutput, err error) {
	if _, unknown := link.Engine.Reader.Head(ctx, t.Thread); unknown != nil {
		if _, err := link.Pull(ctx, []string{t.Thread}, remotes.PullOptions{}); err != nil {
			return out, err
		}
	}
	work := engine.Work{Steps: 1, Expect: t.Expect, StepOptions: engine.StepOptions{Cwd: dir}}
	out.Steps, err = link.Do(ctx, t.Thread, work, remotes.Options{Lease: t.Lease})
	n := len(out.Steps)
	switch {
	case n > 0 && (err == nil || out.Steps[n-1].Status != protocol.StatusIdle):
		out.StepOutput = out.Steps[n-1]
	case n > 0: // the step's output is not the thread's current state
		out.StepOutput, _ = link.Engine.Reader.Show(context.WithoutCancel(ctx), t.Thread)
	}
	if failed := out.StepOutput.Error; err == nil && out.Status == protocol.StatusError && failed != nil {
		err = &protocol.Error{Code: failed.Code, Message: failed.Message}
	}
	return out, err
}
