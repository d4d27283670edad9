package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/notify"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// Action is the kind of a thread's first step.
type Action string

// The actions. All steps after the first are DoStep.
const (
	DoStep   Action = ""       // make the step that the moderator chooses
	DoResume Action = "resume" // answer a suspension, or restart
	DoPoke   Action = "poke"   // repeat a step with new instructions
	DoAnswer Action = "answer" // make the step of a role that a person plays
	DoUndo   Action = "undo"   // return to the previous step and its files
	DoRedo   Action = "redo"   // restore the step that was undone
	DoRetry  Action = "retry"  // start another attempt of a child
	// DoContinue acts as DoResume if the thread has stopped at a limit, and as DoStep otherwise.
	DoContinue Action = "continue"
)

// SignalError is the cause of a context that a signal has cancelled.
type SignalError = proc.SignalError

// UntilEnd as [Work].Steps runs until the end, or until a person is needed.
const UntilEnd = 0

// Work describes an action on a thread. It is stored for a background worker, so its JSON keys must not
// change.
type Work struct {
	Do     Action  `json:"do"`
	Steps  int     `json:"steps"`  // maximum number of steps, including the first
	Prompt string  `json:"prompt"` // for a resume or a poke
	Answer *Answer `json:"answer,omitempty"`
	// At is the step that a poke repeats; "" means the last one.
	At protocol.Hash `json:"at,omitempty"`
	// Key is the key of the child to retry.
	Key string `json:"key,omitempty"`
	// Expect is the required head of the thread; "" accepts any.
	Expect protocol.Hash `json:"expect,omitempty"`
	StepOptions
}

// Answer is a person's answer for a role.
type Answer struct {
	Value any    `json:"value"` // JSON value that matches the question's schema
	By    string `json:"by"`    // name of the person
	// At is the head that the person has seen; "" answers the current question, whatever it is.
	At protocol.Hash `json:"at,omitempty"`
}

// Do works on a thread until a person is needed, the thread ends, all steps are made, or a step fails. It
// holds the thread's lock throughout, except while the thread's children work, so no other process can
// interfere. Running until the end includes the children. On success it returns at least one output: one per
// step, or the thread's state. On error it returns the outputs of the steps made before. Several goroutines
// may use an engine that [Open] returned. Errors are *protocol.Error.
func (e *Engine) Do(ctx context.Context, thread string, w Work) (_ []protocol.StepOutput, err error) {
	defer fault.Coded(&err)
	if err := e.can(w); err != nil {
		return nil, err
	}
	work := func() ([]protocol.StepOutput, error) { return e.driving(w).drive(ctx, thread, nil, w) }
	if w.Do == DoUndo || w.Do == DoRedo || w.Do == DoRetry { // the user who asked for it needs no notification
		w.Steps = 1
		return work()
	}
	return e.resting().RunAndReport(ctx, thread, work)
}

// can returns an error for work that this engine, or any engine, cannot do.
func (e *Engine) can(w Work) error {
	known := []Action{DoStep, DoResume, DoPoke, DoAnswer, DoUndo, DoRedo, DoRetry, DoContinue}
	if !slices.Contains(known, w.Do) || w.Steps < 0 || w.Parallel < 0 {
		return fault.New(protocol.CodeUsage, "invalid request: %q, %d steps, %d at once", w.Do, w.Steps, w.Parallel)
	}
	return e.Reader.MayWrite()
}

// NotifyAbandoned reports [AtRest] for threads whose processes were killed. It reports each thread once; if
// its agent is still running, after that agent has ended.
func (e *Engine) NotifyAbandoned(ctx context.Context) { e.resting().NotifyAbandoned(ctx) }

func (e *Engine) resting() notify.Reporter {
	t := notify.Reporter{Reader: &e.Reader, Shared: e.Shared}
	if e.AtRest && e.Events != nil {
		t.Report = func(notice string, at protocol.StepOutput) {
			e.report(Event{Kind: AtRest, Step: StepInfo{Thread: at.Thread}, Output: &at, Notice: notice})
		}
	}
	return t
}

// did is the result of the work under a thread's lock, and what remains to do without it.
type did struct {
	outs  []protocol.StepOutput
	hand  *children.Child // child that receives the request; nil if none
	drive bool            // the children must be driven
}

func (e *Engine) do(ctx context.Context, h *lockedThread, w Work) (d did, err error) {
	if err := Expected(h.id, w.Expect, h.head); err != nil {
		return d, err
	}
	if err := e.settle(ctx, h, w); err != nil {
		return d, fault.Ended(ctx, err)
	}
	e, err = e.reading(e.Reader.Recalling()).inProjectOf(ctx, h)
	if err != nil {
		return d, fault.Ended(ctx, err)
	}
	if h.barrier == decide.Open {
		if w.StepOptions, err = e.agentsFor(ctx, h, w.StepOptions); err != nil {
			return d, fault.Ended(ctx, err)
		}
	}
	e = e.reading(e.Reader.Remembering().Knowing(h.id, &h.facts))
	if w.Do == DoContinue {
		w.Do = DoStep
		if pos, err := e.Reader.Position(ctx, h.id, h.head); err == nil && h.ended == nil && pos.AtLimit() {
			w.Do = DoResume
		}
	}
	for i := 0; w.Steps == UntilEnd || i < w.Steps; i++ {
		if i > 0 {
			w.Do, w.Expect, w.Answer, w.Fresh, w.KeepFiles = DoStep, "", nil, false, false
			e = e.reading(e.Reader.Recalling())
		}
		w.toEnd = w.Steps == UntilEnd
		w.more = w.toEnd || i+1 < w.Steps
		out, err := e.reading(e.Reader.ConfigOnce()).ask(ctx, h, w.request())
		if (err == nil || out.StepHash != "") && !out.idle { // a finished step counts even if an error follows
			d.outs = append(d.outs, out.StepOutput)
		}
		if err != nil {
			return d, fault.Ended(ctx, err)
		}
		if d.hand, d.drive = out.hand, out.drive; d.hand != nil || d.drive {
			break
		}
		asks := w.Scenario != "" && out.StepHash != "" && out.Question != nil && out.Question.Schema != nil
		if out.Done || out.Status != protocol.StatusIdle && !asks {
			break
		}
	}
	return d, nil
}

// request returns w as a request to decide on.
func (w Work) request() request {
	r := decide.Request{
		Verb: w.Do.verb(), Discard: w.Fresh, Wake: w.Wake, ToEnd: w.toEnd, KeepFiles: w.KeepFiles,
		Words: strings.TrimSpace(w.Prompt) != "",
	}
	if r.Verb == decide.Step && w.due {
		r.Verb = decide.RunDue
	}
	return request{Request: r, Work: w}
}

func (a Action) verb() decide.Verb {
	switch a {
	case DoResume:
		return decide.Resume
	case DoPoke:
		return decide.Poke
	case DoAnswer:
		return decide.Answer
	case DoUndo:
		return decide.Undo
	case DoRedo:
		return decide.Redo
	case DoRetry:
		return decide.Retry
	}
	return decide.Step
}

// Expected returns an error if the thread's head is not want; "" accepts any head.
func Expected(thread string, want, head protocol.Hash) error {
	if want == "" || want == head {
		return nil
	}
	return fault.New(protocol.CodeHeadMoved, "thread %s is at %s, not at %s; nothing was done", thread, head,
		want).Because("moved", "thread", thread)
}

// inProjectOf returns an engine with the project config for the thread's directory.
func (e *Engine) inProjectOf(ctx context.Context, h *lockedThread) (*Engine, error) {
	if e.load == nil {
		return e, nil
	}
	if w := h.facts.Workspace; w != nil {
		return e.InProject(w.Root)
	}
	t, err := thread.Open(ctx, e.Reader.Nodes(), h.head)
	if err != nil {
		return e, nil //nolint:nilerr // the step reports the error
	}
	return e.InProject(t.Start.Cwd)
}

// UnfitError means that a person's answer doesn't match the role's schema. The thread still waits.
type UnfitError struct{ Problems []jsonschema.Problem }

func (e *UnfitError) Error() string {
	var b strings.Builder
	b.WriteString("the answer does not match its schema:")
	for _, p := range e.Problems {
		field := strings.TrimPrefix(p.Path, "/")
		if field == "" {
			field = "the answer as a whole"
		}
		fmt.Fprintf(&b, "\n- %s: %s", plaintext.Line(field), plaintext.Line(p.Message))
	}
	return b.String()
}

// maxBy is the maximum length of an answering person's name, in bytes.
const maxBy = 200

// answer makes the step of a role that a person plays. An invalid answer leaves the thread unchanged.
func (s *session) answer(ctx context.Context) (out protocol.StepOutput, err error) {
	if s.Answer == nil {
		return out, fault.New(protocol.CodeUsage, "empty answer")
	}
	if err := create.Runnable(s.pos.Workflow); err != nil {
		return out, err
	}
	t := s.task
	if s.pos.Next.Cause != moderator.ByPerson { // the role was answered, and the graph asks again
		t.cwd = s.pos.State.Last.Location
	}
	return s.byItself(s.pos, t, protocol.PersonAgent).takeAnswer(ctx, *s.Answer)
}

// takeAnswer makes a step of a valid answer.
func (a *attempt) takeAnswer(ctx context.Context, given Answer) (out protocol.StepOutput, err error) {
	b := a.reader.Batch()
	set := a.reader.Secrets()
	output, text, err := a.fitting(ctx, b, set.HideValue(given.Value))
	if err != nil {
		return out, err
	}
	if a.task.cwd, err = a.workplace(ctx); err != nil {
		return out, err
	}
	if err := a.keepFiles(ctx); err != nil {
		return out, err
	}
	defer a.kept.Release()
	return a.withoutProcess(ctx, func() (protocol.Result, error) {
		by := plaintext.Line(set.Hide(strings.TrimSpace(given.By)))
		return a.submit(ctx, b, own{
			agent: protocol.PersonAgent, output: output, by: protocol.ByValue, answer: text,
			detail: protocol.Detail{By: strings.ToValidUTF8(by[:min(len(by), maxBy)], "")},
		})
	})
}

// fitting returns an answer as the role's output and as text. The error is an [*UnfitError] if the answer
// doesn't match the schema.
func (a *attempt) fitting(ctx context.Context, b *cas.Batch, value any) (extract.Output, string, error) {
	role, err := a.judge(ctx, b)
	if err != nil {
		return extract.Output{}, "", err
	}
	output, err := extract.Value(ctx, value, role)
	var invalid *extract.InvalidError
	switch {
	case errors.As(err, &invalid):
		unfit := &UnfitError{Problems: invalid.Problems}
		if invalid.Reason != "" {
			unfit.Problems = []jsonschema.Problem{{Message: invalid.Reason}}
		}
		return output, "", a.unfit(unfit)
	case err != nil:
		return output, "", err
	case output.Suspend != nil:
		return output, "", a.unfit(&UnfitError{Problems: []jsonschema.Problem{{Path: "/" + protocol.StatusKey,
			Message: "the thread is already waiting, so an answer cannot suspend it"}}})
	}
	text, err := json.Marshal(output.Value)
	return output, string(text), err
}

func (a *attempt) unfit(err *UnfitError) error {
	return (&protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}).Because("unfit-answer",
		"thread", a.locked.id)
}

// StartOptions are the options of [Engine.Start]. Limits bounds the cost of the run and takes precedence over
// the workflow's limits; Workspace determines how its files are kept; Check can refuse or complete what a
// catalog starts. The zero value is valid.
type StartOptions = create.StartOptions

// ForkOptions are the options of [Engine.Fork]: the Thread that contains the node, the fork's directory Cwd,
// and Files, which selects the files it starts with. The zero value is valid.
type ForkOptions = create.ForkOptions

func (e *Engine) maker() create.Maker {
	return create.Maker{Reader: &e.Reader, Files: e.Files(), Drop: e.Files().Drop}
}

// Start creates a thread of a stored workflow. Its directory must be absolute and exist. Missing inputs get
// their defaults. Errors are *protocol.Error.
func (e *Engine) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	return e.maker().Start(ctx, s, o)
}

// Fork creates a thread whose head is an existing start or step node. It shares all nodes with the original
// thread. Errors are *protocol.Error.
func (e *Engine) Fork(ctx context.Context, node protocol.Hash, o ForkOptions) (string, error) {
	return e.maker().Fork(ctx, node, o)
}

// ForkBefore forks a thread at the node before a step, to repeat that step and those after it; from is that
// node. cwd is as in [ForkOptions]. Errors are *protocol.Error or errors of the store.
func (e *Engine) ForkBefore(ctx context.Context, id string, step protocol.Hash, cwd string) (fork string,
	from protocol.Hash, err error) {
	head, err := e.Reader.Head(ctx, id)
	if err != nil {
		return "", "", err
	}
	t, err := thread.Open(ctx, e.Reader.Store, head)
	if err != nil {
		return "", "", err
	}
	if from, err = names.Before(ctx, t, id, step); err != nil {
		return "", "", err
	}
	again := step
	if step == t.StartHash {
		again = ""
	}
	if cwd == "" {
		if err := e.Settled(ctx, id); err != nil {
			return "", "", err
		}
	}
	fork, err = e.Fork(ctx, from, ForkOptions{Thread: id, Cwd: cwd, Before: again, Detached: true})
	return fork, from, err
}

// Declared returns the declared inputs of a stored workflow.
func Declared(ctx context.Context, r cas.Reader, w protocol.Workflow) (map[string]inputs.Declared, error) {
	return create.Declared(ctx, r, w)
}

// SetTitle sets a thread's title; "" restores the title derived from its task. Errors are *protocol.Error.
func (e *Engine) SetTitle(ctx context.Context, id, title string) (err error) {
	defer fault.Coded(&err)
	if err := names.CheckTitle(title); err != nil {
		return err
	}
	if err := e.Reader.MayWrite(); err != nil {
		return err
	}
	if _, _, err := e.Reader.Lookup(ctx, id); err != nil {
		return err
	}
	title = e.Reader.Secrets().Hide(title)
	return e.Reader.Heads.SetFacts(ctx, id, heads.Facts{Title: &title})
}

// Message leaves a message for a thread's agent: the running one if it can receive messages while it works,
// else the next one. The message is kept until it is delivered, exactly once. Errors are *protocol.Error.
func (e *Engine) Message(ctx context.Context, thread, text string) (err error) {
	defer fault.Coded(&err)
	if err := e.Reader.MayWrite(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(text) == "" || !utf8.ValidString(text):
		return fault.New(protocol.CodeUsage, "empty message")
	case len(text) > runfiles.MaxMessage:
		return fault.New(protocol.CodeUsage, "the message has %d bytes; the limit is %d", len(text), runfiles.MaxMessage)
	}
	if err := e.checkReceiver(ctx, thread); err != nil {
		return err
	}
	dir := e.Reader.RunDir(thread)
	if err := dir.Make(); err != nil {
		return err
	}
	key, err := threadid.New(e.Reader.Env.Now(), e.Reader.Env.Rand)
	if err != nil {
		return err
	}
	name, err := runfiles.Dir(dir.Path).Post(e.Reader.FS, runfiles.Message{Text: text, AtMs: e.nowMs()}, key)
	if errors.Is(err, runfiles.ErrFull) {
		return fault.New(protocol.CodeFailed, "thread %s has too many unread messages",
			thread).Because("many-messages", "thread", thread)
	}
	if err != nil {
		return fmt.Errorf("send message to thread %s: %w", thread, err)
	}
	// If the thread has ended by now, no agent will read the message.
	if err := e.checkReceiver(ctx, thread); err != nil && runfiles.Dir(dir.Path).Withdraw(name) {
		return err
	}
	return nil
}

// checkReceiver returns an error if no agent will work on the thread.
func (e *Engine) checkReceiver(ctx context.Context, thread string) error {
	head, ended, err := e.Reader.Lookup(ctx, thread)
	if err != nil {
		return err
	}
	if ended != nil {
		return hasEnded(&lockedThread{id: thread, head: head, ended: ended})
	}
	return nil
}

// warnUndelivered warns that a thread ended before a message was delivered.
func (a *attempt) warnUndelivered() {
	if n := len(runfiles.Dir(a.dir.Path).Unread()); n > 0 {
		a.e.warn(fmt.Sprintf("thread %s has ended with %d unread messages", a.locked.id, n))
	}
}
