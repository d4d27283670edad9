package status

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/formfields"
)

// Situate adds to the facts of a decision what follows from the thread's chain: the next and the last player,
// and the state of the children. f.Life must be set.
func (r *Reader) Situate(p *Position, f *decide.Facts) {
	f.Next, f.Player, f.Last = p.graphNext(), decide.NoPlayer, decide.NoPlayer
	if f.Next != decide.AtEnd && f.Next != decide.Stuck {
		f.Player = PlayerOf(p.Workflow, p.Next.Role)
	}
	if last := p.Thread.Last; last != nil {
		f.Last = PlayerOf(p.Workflow, last.Role)
	}
	f.RateLimited = p.waits
	if f.Player == decide.ByChildren && f.Next == decide.Go && f.Life == decide.Active {
		f.Children = r.childrenOf(p)
	}
}

func (p *Position) graphNext() decide.Next {
	switch {
	case p.Problem != nil:
		return decide.Stuck
	case p.Next.Kind == moderator.End:
		return decide.AtEnd
	case p.Next.Kind != moderator.Suspend, p.Next.Cause == moderator.ByPerson:
		return decide.Go
	case p.Next.Cause == moderator.ByLimit:
		return decide.StepLimit
	case p.Next.Cause == moderator.ByBudget:
		return decide.CostLimit
	}
	return decide.Asks
}

// PlayerOf returns the kind of player of a role.
func PlayerOf(w protocol.Workflow, role string) decide.Player {
	switch r := w.Roles[role]; {
	case r.Person:
		return decide.ByPerson
	case r.HasChildren():
		return decide.ByChildren
	case r.Player() == protocol.PlayedByCommand:
		return decide.ByCommand
	}
	return decide.ByAgent
}

// childrenOf returns the combined state of the next role's children. An ended child counts as working while
// it has unfinished work.
func (r *Reader) childrenOf(p *Position) decide.Children {
	if r.Doubtful(p) != nil {
		return decide.Doubtful
	}
	switch {
	case p.Children.Unstarted():
		return decide.Missing
	case p.Children.AllEnded():
		return decide.AllEnded
	}
	switch p.Output().Status {
	case protocol.StatusSuspended:
		return decide.Asking
	case protocol.StatusRateLimited:
		return decide.Awaiting
	}
	return decide.Working
}

// Doubtful returns a child that has run, or whose siblings have been started, but that is missing from all
// lists. All children of a role are started together, so the home may be damaged. It returns nil if there is
// none.
func (r *Reader) Doubtful(p *Position) *children.Child {
	started := p.Facts.Imported == nil && slices.ContainsFunc(p.Children, func(k children.Child) bool { return k.Head != "" })
	for i := range p.Children {
		k := &p.Children[i]
		another := p.Facts.Attempts[p.Place().AttemptKey(k.Key)] > 0
		if k.Head == "" && (started && !another || r.RunDir(k.ID).Exists()) {
			return k
		}
	}
	return nil
}

// Actions returns what a user can do with a thread: the actions that a decision would not refuse, starting
// with the one that advances the thread. It takes no lock, so the thread may have moved by the time that the
// user acts. Trust in its workflow and the state of its files are only checked then.
func (r *Reader) Actions(ctx context.Context, id string) ([]protocol.Action, error) {
	head, ended, err := r.Lookup(ctx, id)
	if err != nil {
		return nil, fault.Of(err)
	}
	var out protocol.StepOutput
	var p *Position
	if ended == nil {
		out, p, err = r.showActive(ctx, id, head)
	} else {
		out, _ = r.showEnded(ctx, *ended)
		p, _ = r.Position(ctx, id, head) // an ended thread can be partly unreadable
	}
	if err != nil {
		return nil, fault.Of(err)
	}
	s := r.situation(ctx, out, p, ended)
	if r.CutOff(id) {
		s.facts.Intent = decide.Moving
	}
	if undone, err := r.Undone(ctx, p.Facts, head); err == nil {
		s.facts.CanRedo = undone != nil
	}
	return s.actions(out), nil
}

// situation holds what, together with its position, determines the actions of a thread.
type situation struct {
	facts   decide.Facts
	raise   bool   // a cost limit is reached
	limitOf string // thread that has the limit
}

// situation derives the facts from the position, without the thread's lock. Missing facts are checked when
// the user acts.
func (r *Reader) situation(ctx context.Context, out protocol.StepOutput, p *Position, ended *heads.Ended) situation {
	s := situation{limitOf: out.Thread}
	f := &s.facts
	f.Player, f.Last = decide.NoPlayer, decide.NoPlayer
	switch {
	case ended == nil:
	case ended.Status == protocol.StatusFailed:
		f.Life = decide.Failed
	case ended.Status == protocol.StatusCompleted:
		f.Life = decide.Completed
	default:
		f.Life = decide.Cancelled
	}
	switch f.Busy = out.Status == protocol.StatusRunning; {
	case out.Status == protocol.StatusCorrupt || p.Thread == nil:
		f.Barrier = decide.Unreadable
	case out.Pending:
		f.Run, f.Result, f.Same = decide.InFlight, decide.Ready, true
	case out.Status == protocol.StatusError:
		f.Run = decide.Errored
	}
	if f.Barrier == decide.Unreadable {
		return s
	}
	r.Situate(p, f)
	if p.Parked > 0 {
		f.Account = decide.Limited
	}
	f.ChildrenBusy = slices.ContainsFunc(out.Children, func(c protocol.ChildOutput) bool {
		return c.Status == protocol.StatusRunning
	})
	if p.heldBy != nil {
		s.limitOf = p.heldBy.thread
	}
	s.raise = AtLimit(out) && (out.Status != protocol.StatusSuspended || f.Next == decide.CostLimit || p.ofRun)
	if f.Life != decide.Active { // it would start over
		first, err := moderator.Resume(ctx, p.State, true, "")
		if f.Next, f.Player = decide.Go, PlayerOf(p.Workflow, first.Role); err != nil {
			f.Next, f.Player = decide.Stuck, decide.NoPlayer
		}
	}
	return s
}

// AtLimit reports whether a thread has stopped at a limit that a user can raise.
func AtLimit(at protocol.StepOutput) bool {
	stopped := at.Status == protocol.StatusSuspended || at.Status == protocol.StatusRateLimited
	return stopped && at.Question == nil && at.Error != nil && at.Error.Code == protocol.CodeLimit
}

// AtLimit reports whether the thread has stopped at a limit of steps or cost, without a question.
func (p *Position) AtLimit() bool {
	at := p.Output()
	return at.Status == protocol.StatusSuspended && at.Question == nil
}

// needsPerson reports whether a thread cannot continue without a person. A thread at a provider's rate limit
// can.
func needsPerson(at protocol.StepOutput) bool {
	switch at.Status {
	case protocol.StatusSuspended, protocol.StatusError, protocol.StatusCorrupt:
		return true
	}
	return AtLimit(at)
}

// NeedsPerson reports whether a listed thread cannot continue without a person.
func (s ThreadInfo) NeedsPerson() bool { return needsPerson(s.At) }

// NoticeOf returns the kind of notification for a thread in this state, or "".
func NoticeOf(out protocol.StepOutput) string {
	switch {
	case out.Status == protocol.StatusSuspended && AtLimit(out):
		return protocol.NoticeLimit
	case out.Status == protocol.StatusError, out.Status == protocol.StatusCorrupt:
		return protocol.NoticeError
	case out.Status == protocol.StatusFailed:
		return protocol.NoticeFailed
	case out.Status == protocol.StatusCompleted:
		return protocol.NoticeCompleted
	case out.Status == protocol.StatusSuspended:
		return protocol.NoticeWaiting
	}
	return ""
}

// actions lists the possible actions, the most likely one first.
func (s situation) actions(at protocol.StepOutput) []protocol.Action {
	id, words := at.Thread, map[string]any{"type": "string"}
	var all []protocol.Action
	add := func(verb string, form any, args ...string) {
		if !slices.ContainsFunc(all, func(a protocol.Action) bool { return a.Verb == verb }) {
			all = append(all, protocol.Action{Verb: verb, Form: form, Command: append([]string{"thread"}, args...)})
		}
	}
	switch asks := at.Question != nil; {
	case asks && at.Question.Schema != nil:
		add(protocol.VerbAnswer, at.Question.Schema, answering(at)...)
	case asks:
		add(protocol.VerbResume, words, "resume", id, "-p", "<answer>")
	case s.raise:
		add(protocol.VerbRaiseLimit, nil, "resume", s.limitOf, "--raise-limit")
	case at.Status == protocol.StatusRunning:
		add(protocol.VerbWait, nil, "wait", id)
	case at.Status == protocol.StatusError, at.Status == protocol.StatusCorrupt:
		add(protocol.VerbDiagnose, nil, "diagnose", id)
	case at.Status.AtEnd():
		add(protocol.VerbRead, nil, "read", id)
	}
	for _, v := range []struct {
		verb    string
		request decide.Request
		form    any
		args    []string
	}{
		{protocol.VerbContinue, decide.Request{Verb: decide.Step, ToEnd: true, Wake: true}, nil, []string{"resume", id}},
		{protocol.VerbResume, decide.Request{Verb: decide.Resume, Words: true}, words,
			[]string{"resume", id, "-p", "<what else to do>"}},
		{protocol.VerbRetry, decide.Request{Verb: decide.Poke}, words, []string{"retry", id, "-p", "<new instructions>"}},
		{protocol.VerbUndo, decide.Request{Verb: decide.Undo}, nil, []string{"undo", id}},
		{protocol.VerbRedo, decide.Request{Verb: decide.Redo}, nil, []string{"redo", id}},
		{protocol.VerbStop, decide.Request{Verb: decide.Stop}, nil, []string{"stop", id}},
		{protocol.VerbKill, decide.Request{Verb: decide.Kill}, nil, []string{"kill", id}},
		{protocol.VerbFork, decide.Request{Verb: decide.ForkAt}, nil, []string{"fork", string(at.Head)}},
	} {
		if v.verb == protocol.VerbContinue && at.Status == protocol.StatusSuspended && at.Question == nil {
			v.request = decide.Request{Verb: decide.Resume}
		}
		if a := decide.Decide(s.facts, v.request); a.Kind != decide.Refuse && a.Kind != decide.Report {
			add(v.verb, v.form, v.args...)
		}
	}
	if s.facts.Life == decide.Active {
		add(protocol.VerbMessage, words, "message", id, "<text>")
	}
	return all
}

// answering returns a command that sets the required fields of a form and those with choices, each to the first one.
func answering(at protocol.StepOutput) []string {
	var args []string
	given := map[string]any{}
	for range 2 { // choosing a variant can add required fields
		args = []string{"answer", at.Thread}
		for _, f := range formfields.Fields(at.Question.Schema, given, protocol.StatusKey) {
			value := "…"
			if len(f.Choices) > 0 {
				value, given[f.Name] = f.Choices[0], f.Choices[0]
			}
			if f.Required || len(f.Choices) > 0 {
				args = append(args, "--set", f.Name+"="+value)
			}
		}
	}
	return args
}

// Actions is like [Reader.Actions] for a listed thread. Only threads that wait for a person have actions
// here, and it is unknown whether a step was undone or a change interrupted.
func (s ThreadInfo) Actions() []protocol.Action {
	if s.can == nil {
		return nil
	}
	return s.can.actions(s.At)
}
