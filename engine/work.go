package engine

import (
	"context"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// Action is what a thread's first step is to be.
type Action string

// The actions. Steps that follow the first one are always of the first kind.
const (
	DoStep   Action = ""       // what the moderator says
	DoResume Action = "resume" // the answer to a suspension, or a new start
	DoPoke   Action = "poke"   // a step again, with new instructions
	DoAnswer Action = "answer" // the step of a role that a person plays
)

// SignalError is the cause of a context that a signal ended.
type SignalError = proc.SignalError

// UntilEnd as [Work].Steps goes on until the end, or until a person is needed.
const UntilEnd = 0

// Work is what is to be done on a thread. It is stored for a background worker,
// so its keys stay as they are.
type Work struct {
	Do     Action  `json:"do"`
	Steps  int     `json:"steps"`  // at most, the first one included
	Prompt string  `json:"prompt"` // of a resume or a poke
	Answer *Answer `json:"answer,omitempty"`
	// At is the step that a poke makes again; "": the last one.
	At protocol.Hash `json:"at,omitempty"`
	// Expect is where the thread must stand; "": wherever it does.
	Expect protocol.Hash `json:"expect,omitempty"`
	StepOptions
}

// Answer is what a person answers for a role.
type Answer struct {
	Value any    `json:"value"` // a JSON value: what the question's schema asks for
	By    string `json:"by"`    // whose answer it is
	// At is the head that the person has seen; "": whatever is asked now.
	At protocol.Hash `json:"at,omitempty"`
}

// Do works on a thread until a person is needed, the thread ends, all steps are made, or one
// fails. It holds the thread's lock all the time, except while the thread's children are at
// work, so nobody else gets in between. Running until the end includes the children. It always
// returns what was done: an output for each step, or one that says why there was none. Errors
// are *protocol.Error.
func (e *Engine) Do(ctx context.Context, thread string, w Work) ([]protocol.StepOutput, error) {
	return e.resting().Until(ctx, thread, func() ([]protocol.StepOutput, error) { return e.driving(w).drive(ctx, thread, nil, w) })
}

// TellForsaken calls [Engine.Rested] on behalf of killed processes, for the threads that they
// worked on. Each thread is reported once; one whose agent lives on, after that agent has
// ended.
func (e *Engine) TellForsaken(ctx context.Context) { e.resting().Forsaken(ctx) }

func (e *Engine) resting() rest.Teller {
	return rest.Teller{Reader: &e.Reader, Told: e.Rested, Shared: e.Shared}
}

func (e *Engine) do(ctx context.Context, h *lockedThread, w Work) ([]protocol.StepOutput, error) {
	if err := Expected(h.id, w.Expect, h.head); err != nil {
		return nil, err
	}
	if err := e.settle(ctx, h, w); err != nil {
		return nil, fault.Ended(ctx, err)
	}
	e, err := e.reading(e.Recalling()).inProjectOf(ctx, h)
	if err != nil {
		return nil, fault.Ended(ctx, err)
	}
	if w.StepOptions, err = e.agentsFor(ctx, h, w.StepOptions); err != nil {
		return nil, fault.Ended(ctx, err)
	}
	e = e.reading(e.Remembering().Knowing(h.id, &h.facts))
	var outs []protocol.StepOutput
	for i := 0; w.Steps == UntilEnd || i < w.Steps; i++ {
		o := w.StepOptions
		o.toEnd = w.Steps == UntilEnd
		o.more = o.toEnd || i+1 < w.Steps
		action := w.Do
		if i > 0 {
			action, e = DoStep, e.reading(e.Recalling())
		}
		out, err := e.reading(e.ConfigOnce()).act(ctx, h, action, w, o)
		if err == nil || out.StepHash != nil { // a finished step counts, whatever came after it
			outs = appendOutput(outs, w, out)
		}
		if err != nil {
			return outs, fault.Ended(ctx, err)
		}
		asks := w.Scenario != "" && out.StepHash != nil && out.Question != nil && out.Question.Schema != nil
		if out.Done || out.Status != protocol.StatusIdle && !asks {
			break
		}
	}
	return outs, nil
}

// Expected refuses a thread that is not where somebody expects it; "": wherever it is.
func Expected(thread string, want, head protocol.Hash) error {
	if want == "" || want == head {
		return nil
	}
	return fault.Hinted(fault.New(protocol.CodeHeadMoved, "thread %s is at %s, not at %s: nothing was done", thread, head, want),
		"uwf thread show "+thread)
}

// inProjectOf is [Engine.InProject] of where a thread works.
func (e *Engine) inProjectOf(ctx context.Context, h *lockedThread) (*Engine, error) {
	if e.load == nil {
		return e, nil
	}
	if w := h.facts.Workspace; w != nil {
		return e.InProject(w.Root)
	}
	t, err := thread.Open(ctx, e.Nodes(), h.head)
	if err != nil {
		return e, nil //nolint:nilerr // the step will say what is wrong with the thread
	}
	return e.InProject(t.Start.Cwd)
}

// appendOutput keeps only the last step's data of a run of unlimited length.
func appendOutput(outs []protocol.StepOutput, w Work, more ...protocol.StepOutput) []protocol.StepOutput {
	for _, out := range more {
		if w.Steps == UntilEnd && len(outs) > 0 {
			outs[len(outs)-1].Output = nil
		}
		outs = append(outs, out)
	}
	return outs
}

func (e *Engine) act(ctx context.Context, h *lockedThread, d Action, w Work, o StepOptions) (protocol.StepOutput, error) {
	switch d {
	case DoResume:
		return e.resume(ctx, h, w.Prompt, o)
	case DoPoke:
		return e.poke(ctx, h, w.At, w.Prompt, o)
	case DoAnswer:
		return e.answer(ctx, h, w.Answer, o)
	}
	return e.step(ctx, h, o)
}

// Step makes one step of a thread, or adopts the finished result of an
// interrupted one. The output is meaningful also when the error is not nil: it is
// where the thread stands then. Errors are *protocol.Error.
func (e *Engine) Step(ctx context.Context, thread string, o StepOptions) (protocol.StepOutput, error) {
	return e.once(ctx, thread, Work{StepOptions: o})
}

// Resume is [Engine.Step] for a thread that waits for a person, or has ended.
func (e *Engine) Resume(ctx context.Context, thread, supplement string, o StepOptions) (protocol.StepOutput, error) {
	return e.once(ctx, thread, Work{Do: DoResume, Prompt: supplement, StepOptions: o})
}

// Poke is [Engine.Step], in place of the thread's last step.
func (e *Engine) Poke(ctx context.Context, thread, prompt string, o StepOptions) (protocol.StepOutput, error) {
	return e.once(ctx, thread, Work{Do: DoPoke, Prompt: prompt, StepOptions: o})
}

func (e *Engine) once(ctx context.Context, thread string, w Work) (protocol.StepOutput, error) {
	w.Steps = 1
	outs, err := e.Do(ctx, thread, w)
	if len(outs) > 0 {
		return outs[0], err
	}
	// A second failure adds nothing to the first.
	out, _ := e.Show(context.WithoutCancel(ctx), thread)
	return out, err
}
