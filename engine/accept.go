package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
)

// rejection says why the step that an agent returned is not taken. It is final:
// the same step is never adopted later.
type rejection struct {
	step protocol.Hash
	why  *protocol.Error
}

// Error implements error.
func (r *rejection) Error() string { return r.why.Message }

// Unwrap leads to the coded error.
func (r *rejection) Unwrap() error { return r.why }

// accepted is a step that is what was asked for, with all that it names.
type accepted struct {
	hash  protocol.Hash
	step  protocol.Step
	nodes []cas.Node // the step and what it names, but for the chain before it, unless it is durable
	// durable: the agent says that it has flushed them.
	durable bool
}

// accept checks what an agent returned: an agent may be wrong in every way, and
// a head must never lead to a step that nobody can go on from. The error is a
// *[rejection], unless the store could not be asked.
func (a *attempt) accept(ctx context.Context, result protocol.Result) (accepted, error) {
	hash := result.StepHash
	got := accepted{hash: hash, durable: result.Durable}
	node, err := a.nodes().Get(ctx, hash)
	if err == nil {
		got.step, err = cas.As[protocol.Step](ctx, a.nodes(), node)
	}
	if err != nil {
		return got, notAStep(hash, err)
	}
	if reason := a.misplaced(got.step); reason != "" {
		return got, rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	if reason := a.misstated(ctx, got.step); reason != "" {
		return got, rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	if err := a.checkOutput(ctx, got.step); err != nil {
		return got, unusable(hash, "output", err)
	}
	// The agent may have damaged what was whole when it began: this is read again.
	if _, err := a.Store.Get(ctx, a.locked.head); err != nil {
		return got, fmt.Errorf("the node that step %s follows: %w", hash, err)
	}
	named, err := contents(ctx, a.nodes(), got.step, !got.durable)
	if err != nil {
		return got, unusable(hash, "content", err)
	}
	reason, err := a.borrowed(ctx, got.step)
	if err != nil {
		return got, unusable(hash, "content", err)
	}
	if reason != "" {
		return got, rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	got.nodes = append(named, node)
	a.checkFiles(ctx, got.step)
	return a.withTries(ctx, got)
}

// misplaced says how a step differs from the one that was asked for, "" if it
// does not.
func (a *attempt) misplaced(s protocol.Step) string {
	t, wantPrev, visits := a.pos.thread, protocol.Hash("none"), map[string]int{}
	if t.Last != nil {
		wantPrev = t.Head
		visits = maps.Clone(t.Last.Visits)
	}
	visits[a.task.role]++
	prev := protocol.Hash("none")
	if s.Prev != nil {
		prev = *s.Prev
	}
	switch {
	case s.Start != t.StartHash:
		return fmt.Sprintf("belongs to another thread: its start is %s, not %s", s.Start, t.StartHash)
	case prev != wantPrev:
		return fmt.Sprintf("does not follow the head: its prev is %s, not %s", prev, wantPrev)
	case protocol.IsEngine(s.Agent) && a.pos.workflow.Roles[a.task.role].Player() == protocol.PlayedByAgent:
		return fmt.Sprintf("says that it is by %s, which no agent is", s.Agent)
	case s.Role != a.task.role:
		return fmt.Sprintf("is one of role %q, not %q", s.Role, a.task.role)
	case s.Index != t.Len():
		return fmt.Sprintf("has index %d, not %d", s.Index, t.Len())
	case s.LimitBase != a.task.limitBase:
		return fmt.Sprintf("has limitBase %d, not %d", s.LimitBase, a.task.limitBase)
	case !maps.Equal(s.Visits, visits):
		return fmt.Sprintf("miscounts the visits: it has %v, not %v", s.Visits, visits)
	case s.Agent == "":
		return "does not name its agent"
	}
	return ""
}

// checkOutput checks that the output has the role's schema as type and
// satisfies it; every role may suspend instead.
func (a *attempt) checkOutput(ctx context.Context, s protocol.Step) error {
	node, err := a.nodes().Get(ctx, s.Output)
	if err != nil {
		return err
	}
	want := a.pos.workflow.Roles[a.task.role].Frontmatter
	kind := protocol.KindSuspend
	if node.Type != want {
		kind, _, err = a.Store.Kinds().Of(ctx, a.nodes(), node.Type)
	}
	if err != nil || kind != protocol.KindSuspend {
		return fmt.Errorf("%w: its type is %s, the schema of role %q is %s", errWrongContent, node.Type, a.task.role, want)
	}
	return cas.Verify(ctx, a.nodes(), s.Output)
}

// contents reads everything that a step names but the chain: output, detail,
// turns, and the texts of its prompts. What was redacted is left out, but for the
// output: nobody could go on from a step without one. Only if they are to be kept are
// they returned: a step may have more than fits into memory.
func contents(ctx context.Context, r cas.Reader, s protocol.Step, keep bool) ([]cas.Node, error) {
	output, err := r.Get(ctx, s.Output)
	if fault.IsRedacted(err) {
		return nil, fmt.Errorf("cannot continue from a step without its output: %w", err)
	}
	if err != nil {
		return nil, err
	}
	c := collector{r: r, keep: keep}
	c.add(output)
	if s.Prompt != nil {
		if _, _, err := c.take(ctx, *s.Prompt); err != nil {
			return nil, err
		}
	}
	node, there, err := c.take(ctx, s.Detail)
	if err != nil || !there {
		return c.nodes, err
	}
	detail, err := cas.As[protocol.Detail](ctx, r, node)
	if err == nil {
		err = c.takeParts(ctx, detail)
	}
	return c.nodes, err
}

// collector gathers nodes, but for those that were redacted.
type collector struct {
	r     cas.Reader
	keep  bool
	nodes []cas.Node
}

func (c *collector) add(n cas.Node) {
	if c.keep {
		c.nodes = append(c.nodes, n)
	}
}

func (c *collector) take(ctx context.Context, h protocol.Hash) (n cas.Node, there bool, err error) {
	n, err = c.r.Get(ctx, h)
	switch {
	case fault.IsRedacted(err):
		return n, false, nil
	case err != nil:
		return n, false, err
	}
	c.add(n)
	return n, true, nil
}

// takeParts takes the turns of a detail, which must be turns, and its requests.
func (c *collector) takeParts(ctx context.Context, d protocol.Detail) error {
	for _, h := range d.Turns {
		n, there, err := c.take(ctx, h)
		if err == nil && there {
			_, err = cas.As[protocol.Turn](ctx, c.r, n)
		}
		if err != nil {
			return err
		}
	}
	for _, h := range d.Requests {
		if _, _, err := c.take(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

var errWrongContent = errors.New("it is not the requested step")

func rejected(step protocol.Hash, code protocol.Code, format string, args ...any) error {
	return &rejection{step: step, why: fault.New(code, "the agent's result is rejected: "+format, args...)}
}

// notAStep: the hash on the agent's last line does not lead to a step.
func notAStep(hash protocol.Hash, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return rejected(hash, protocol.CodeAgent, "%s is not in the store", hash)
	case errors.As(err, &kind):
		return rejected(hash, protocol.CodeAgent, "%s is not a step", hash)
	case fault.IsDamage(err):
		return rejected(hash, protocol.CodeCorrupt, "%v", err)
	}
	return err
}

// unusable: what a step names is not there or not right. What is damaged on
// disk is not the agent's fault.
func unusable(step protocol.Hash, what string, err error) error {
	var corrupt *cas.CorruptError
	switch {
	case errors.As(err, &corrupt):
		return rejected(step, protocol.CodeCorrupt, "the %s of step %s: %v", what, step, err)
	case fault.IsRedacted(err):
		return rejected(step, protocol.CodeRedacted, "the %s of step %s was redacted earlier, and does not come back: %v", what, step, err)
	case errors.Is(err, errWrongContent), fault.IsDamage(err):
		return rejected(step, protocol.CodeAgent, "the %s of step %s: %v", what, step, err)
	}
	return err
}

// reject records that a result was not taken and why, so that it never is. An
// error that is no rejection leaves the record unfinished: the result may be
// good, and the next step looks at it again.
func (a *attempt) reject(err error) error {
	var no *rejection
	if !errors.As(err, &no) {
		return err
	}
	no.why = fault.Hinted(no.why, a.again()+" tries again", "what the agent printed is in "+a.dir.Path)
	no.why = a.hidden(no.why)
	a.record.StepHash, a.record.Reason = no.step, no.why.Message
	return a.failed(rundir.Rejected, no.why)
}
