package cliagent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Messages to a session whose run ended before its work was done.
const (
	finishText = "Continue where you stopped, and finish with the required output."
	toldText   = "Do what follows from that. Then finish with the required output, the whole of it, also if it is what you have written already."
	stopText   = "Stop using tools now. Write the final output, as required, from what you know so far."
)

// refusedText is the message to a session that ended when it was refused something: some
// programs take a refusal for a person's wish to stop.
func refusedText(what []string) string {
	return "You were not allowed to do this, and nobody can allow it now: " + strings.Join(what, "; ") +
		". That is no reason to stop: do the work with what you may use, and finish with the required output. If it cannot be done without, say so in the output."
}

// maxRefusals is how often a session is told to go on after a refusal.
const maxRefusals = 3

// run does the role's work.
func (r *runner) run() (agentkit.Result, error) {
	t := task{prompt: r.req.Prompt, session: r.req.SessionID, fork: r.req.Fork, cut: r.req.Cut}
	if isMadeUp(t.session) {
		if err := r.req.StartOver(r.ctx, r.adapter.Program+" names no session"); err != nil {
			return agentkit.Result{}, err
		}
		t = task{prompt: r.req.Prompt}
	}
	if t.session != "" {
		k, found := r.shelf.get(t.session)
		anywhere := r.adapter.Sessions.CopiesAnywhere
		why := k.stale(found, r.command, r.cwd, r.adapter.Sessions.AnyDir || t.fork && anywhere != nil && anywhere(r.version()))
		if !r.adapter.isPlain(t.session) || t.cut != "" && !r.adapter.isPlain(t.cut) {
			why = "its id is not plain"
		}
		if why != "" {
			if err := r.startOver(&t, why); err != nil {
				return agentkit.Result{}, err
			}
		}
	}
	return r.work(t)
}

// correct sends a message into a session.
func (r *runner) correct(session, message string) (agentkit.Result, error) {
	r.notes, r.fresh, r.told = nil, false, false
	t := task{prompt: message, session: session, message: message}
	if isMadeUp(session) {
		t.session, t.prompt = "", withAnswer(r.req.Prompt, r.answer, message)
	}
	return r.work(t)
}

// madeUp is the prefix of ids for conversations that the program does not remember: the step
// needs an id all the same.
const madeUp = "none-"

func isMadeUp(session string) bool { return strings.HasPrefix(session, madeUp) }

// withAnswer is the prompt for a program that remembers nothing.
func withAnswer(prompt, answer, message string) string {
	return fmt.Sprintf("%s\n\n## Your answer so far\n\n%s\n\n## What is wrong with it\n\n%s", prompt, answer, message)
}

// work makes calls until there is an answer, or there will be none.
func (r *runner) work(t task) (agentkit.Result, error) {
	r.pushed, r.refusals = false, 0
	var spent spent
	for {
		out, err := r.try(t)
		if errors.Is(err, ErrCannotFork) && t.fork {
			if err := r.startOver(&t, err.Error()); err != nil {
				return agentkit.Result{}, err
			}
			continue
		}
		if err != nil {
			return agentkit.Result{}, err
		}
		spent.add(out)
		r.worked = r.worked || out.worked
		if err := r.heard(out); err != nil {
			return agentkit.Result{}, err
		}
		next, err := r.next(out)
		if err == nil && next != nil {
			t = *next
			continue
		}
		res := r.result(out)
		res.Usage = spent.usage()
		if res.Detail != nil {
			res.Detail.DurationMs = spent.tookMs
		}
		if err == nil {
			err = r.conclude(&res, out)
		}
		if err != nil && out.Kind == Failed && spent.nothing() {
			res.Usage = &protocol.Usage{DurationMs: spent.tookMs} // the model has not said a word
		}
		return res, err
	}
}

// next is the task that must follow a call; nil if there is none.
func (r *runner) next(out tried) (*task, error) {
	t := out.task
	switch {
	case out.Kind == SessionLost, r.unusable(out):
		return &t, r.startOver(&t, out.Message)
	case !out.canGoOn(r.adapter.Sessions):
		return nil, nil
	case out.Kind == OK && len(r.req.Letters()) > 0:
		return r.toldLate(out)
	case out.stoppedByRefusal() && r.refusals < maxRefusals:
		r.refusals++
		r.note("it stopped when it was not allowed something, and was told to go on")
		return &task{prompt: refusedText(out.Refused), session: out.Session, message: t.message}, nil
	case r.pushed:
		return nil, nil
	case out.Kind == Incomplete && !isFramed(out.text):
		r.pushed = true
		r.note("it ended without an answer and was asked to finish")
		return &task{prompt: finishText, session: out.Session, message: t.message}, nil
	case out.counted:
		r.pushed = true
		r.note("it was stopped at the limit of %d turns and asked for its answer", r.maxTurns)
		return &task{prompt: stopText, session: out.Session, message: t.message}, nil
	}
	return nil, nil
}

// toldLate is the task that passes on what people said while the program worked and could not
// hear it.
func (r *runner) toldLate(out tried) (*task, error) {
	t := &task{session: out.Session, message: out.task.message, letters: r.req.Letters()}
	for _, l := range t.letters {
		if err := r.tell(context.WithoutCancel(r.ctx), protocol.Turn{Role: protocol.TurnUser, Content: l.Text}); err != nil {
			return nil, err
		}
		t.prompt += l.Text + "\n\n"
	}
	t.prompt += toldText
	r.note("it was told what a person has said meanwhile")
	return t, nil
}

// heard records which letters a call has delivered, once the model has answered them.
func (r *runner) heard(out tried) error {
	if !out.worked && out.Kind != OK {
		return nil
	}
	for _, l := range out.task.letters {
		if err := r.req.Heard(l); err != nil {
			return err
		}
	}
	return nil
}

// unusable reports whether a continued session is the reason for a failure.
func (r *runner) unusable(out tried) bool {
	if out.Kind != Failed || out.task.session == "" || out.worked || r.fresh {
		return false
	}
	switch out.Error {
	case errorkind.SessionNotFound, errorkind.SessionInUse, errorkind.Context, errorkind.BadRequest, Crashed, errorkind.Unknown:
		return true
	}
	return false
}

// startOver gives up the session: the whole prompt goes into a new one.
func (r *runner) startOver(t *task, why string) error {
	if r.fresh {
		return &Error{Program: r.adapter.Program, Kind: errorkind.SessionNotFound, Text: fmt.Sprintf("%s lost its session again: %s", r.adapter.Program, why)}
	}
	r.fresh = true
	why = fmt.Sprintf("session %s could not be continued (%s)", t.session, firstLine(why))
	text := why + ": started over with the whole prompt"
	ctx := context.WithoutCancel(r.ctx)
	if err := r.tell(ctx, protocol.Turn{Role: protocol.TurnSystem, Content: text}); err != nil {
		return err
	}
	if err := r.req.StartOver(ctx, why); err != nil {
		return err
	}
	*t = task{prompt: r.req.Prompt, message: t.message}
	if t.message != "" {
		t.prompt = withAnswer(r.req.Prompt, r.answer, t.message)
	}
	return nil
}
