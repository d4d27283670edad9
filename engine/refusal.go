package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// errParentOpen means that a child waits for its parent, which has unfinished work, until the parent resumes.
var errParentOpen = errors.New("the parent thread has an unfinished action")

// refusal returns the error for a refused request.
func (s *session) refusal(ctx context.Context, a decide.Action) error {
	id := s.locked.id
	switch a.Reason {
	case "damaged":
		return s.unread
	case "agent-alive":
		return s.reader.Outlived(id, s.record)
	case "moved":
		return s.headMoved()
	case "ended-already":
		return fault.New(a.Code, "thread %s has already ended: %s", id, s.locked.ended.Status).Because("ended-before", "thread", id)
	case "cancelled", "ended":
		return hasEnded(s.locked)
	case "no-cwd", "untrusted":
		return s.locked.barred
	case "parent-open":
		err := fault.New(a.Code, "thread %s is a child of thread %s, which must finish a run or an interrupted "+
			"move first", id, s.parent)
		err.Err = errParentOpen
		return err.Because("parent-open", "parent", s.parent)
	case "parent-moved":
		undone := ""
		if s.parentUndone {
			undone = s.parent
		}
		return fault.New(a.Code, "thread %s is a child of thread %s, which no longer needs it", id,
			s.parent).Because("parent-moved", "head", string(s.locked.head), "undone", undone)
	case "result-waits":
		return s.waits()
	case "files-changed":
		return s.unfit
	case "no-budget":
		return s.budgetOf()
	case "cost-limit", "children-cost-limit":
		return s.pos.WithinBudget(s.pos.Next.Role)
	case "stuck", "no-restart":
		return s.stuck()
	case "doubtful-child":
		return s.doubt()
	case "no-step", "not-an-agents-step":
		return s.notAgain(a)
	case "nothing-undone":
		return fault.New(a.Code, "thread %s has no step to redo", id).Because("nothing-undone", "thread", id)
	case "earlier-limited":
		return fault.New(a.Code, "thread %s would move to an earlier step, but the account of its agent is "+
			"rate-limited: %s", id,
			s.limited.Reason).Because("earlier-limited", "thread", id)
	case "no-such-child":
		return fault.New(a.Code, "thread %s has no unjoined child %q", id,
			s.Key).Because("no-such-child", "thread", id)
	}
	return s.inputError(a)
}

// inputError returns the error for input that the thread doesn't wait for.
func (s *session) inputError(a decide.Action) error {
	id, role := s.locked.id, s.pos.Next.Role
	switch a.Reason {
	case "asks-nothing":
		return fault.New(a.Code, "thread %s asks no question: it has ended", id)
	case "needs-words":
		return fault.New(a.Code, "thread %s asks for a text answer, not for data", id).Because("needs-words", "thread", id)
	case "needs-form":
		return fault.New(a.Code, "thread %s waits for data of role %q, not for a text answer", id,
			role).Because("needs-form", "thread", id)
	case "words-reach-no-child":
		return fault.New(a.Code, "thread %s: role %q runs as child threads, which cannot receive a text answer", id,
			role).Because("words-reach-no-child", "thread", id)
	}
	if s.Verb == decide.Answer {
		return fault.New(a.Code, "thread %s asks no question: next is role %q", id, role).Because("not-asked", "thread", id)
	}
	return fault.New(a.Code, "thread %s is not suspended; next is %q", id, role).Because("not-asked", "thread", id)
}

// headMoved returns the error for a thread whose head is not the expected one.
func (s *session) headMoved() error {
	if err := Expected(s.locked.id, s.Expect, s.locked.head); err != nil {
		return err
	}
	return fault.New(protocol.CodeFailed, "thread %s has moved: its head is %s, not %s; nothing was answered",
		s.locked.id, s.locked.head, s.Answer.At).Because("moved", "thread", s.locked.id)
}

// waits returns the error for a finished step whose prompt differs from the current one.
func (s *session) waits() error {
	what := cmp.Or(s.step.Hash, s.result.StepHash, "of a command") // its step is made when the result is adopted
	return s.anew(fault.New(protocol.CodeFailed, "role %q has finished an earlier request, and its result is not "+
		"used yet: step %s", s.record.Role, what).Because("result-waits", "thread", s.locked.id, "again",
		s.open.further()))
}

// anew adds the facts for a hint on discarding the pending result.
func (s *session) anew(err *protocol.Error) error {
	return err.Because("result-kept", "thread", s.locked.id, "again", s.Work.Do.again(), "dir", s.dir.Path)
}

// budgetOf returns the error for the limit that prevents the role from running.
func (s *session) budgetOf() error {
	if s.target != nil {
		return s.target.WithinBudget(s.target.Thread.Last.Role)
	}
	return s.pos.WithinBudget(s.task.role)
}

// stuck returns the error for a thread that has no next step.
func (s *session) stuck() error {
	id, role := s.locked.id, s.task.role
	switch {
	case s.pos.Problem != nil && s.facts.Life == decide.Active:
		return s.pos.Explain()
	case errors.Is(s.notask, moderator.ErrChildren):
		return fault.New(protocol.CodeFailed, "cannot restart thread %s: its first role %q runs as child threads", id, role)
	case errors.Is(s.notask, moderator.ErrForm):
		return fault.New(protocol.CodeFailed, "cannot restart thread %s: a person plays its first role %q", id, role)
	case s.notask != nil:
		return s.notask
	}
	return s.pos.Explain()
}

// notAgain returns the error for a step that cannot be retried or undone.
func (s *session) notAgain(a decide.Action) error {
	id := s.locked.id
	switch {
	case s.Verb == decide.Undo:
		return fault.New(a.Code, "thread %s has no step to undo", id).Because("no-step", "thread", id)
	case a.Reason == "no-step":
		return fault.New(a.Code, "cannot retry thread %s: it has no step", id).Because("no-step", "thread", id)
	}
	why := "a person made its last step"
	if s.facts.Last == decide.ByChildren {
		why = "its last step joins child threads"
	}
	return fault.New(a.Code, "cannot retry thread %s: %s", id, why).Because("not-an-agents-step", "previous",
		string(s.target.Previous()))
}

// doubt returns the error for a child that may have been paid for already.
func (s *session) doubt() error {
	k := s.reader.Doubtful(s.pos)
	return fault.New(protocol.CodeCorrupt, "child %s of thread %s may have run, but threads.yaml and "+
		"history.jsonl lack it (%s)", children.Named(k.Key, children.LabelOf(k.Child)),
		s.locked.id, k.ID).Because("doubtful-child", "child", children.Address(s.locked.id, k.Key))
}

// promptOf returns the prompt that a record refers to.
func (s *session) promptOf(ctx context.Context, h protocol.Hash) (string, error) {
	text, err := cas.Read[protocol.Text](ctx, s.reader.Nodes(), h)
	return string(text), err
}
