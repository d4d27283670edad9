// Package verify checks that a step answers its task and makes no impossible claims. The agent that made it
// can be arbitrarily wrong, or malicious.
package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
)

// Rejection is the reason why an agent's step is not accepted. It is final: the same step is never adopted
// later.
type Rejection struct {
	Step protocol.Hash
	Why  *protocol.Error
}

func (r *Rejection) Error() string { return r.Why.Message }

// Unwrap returns the coded error.
func (r *Rejection) Unwrap() error { return r.Why }

// Accepted is a valid step with all nodes that it refers to.
type Accepted struct {
	Hash  protocol.Hash
	Step  protocol.Step
	Nodes []cas.Node // the step and its nodes, without the chain before it; empty if durable
	// Durable means that the agent reports to have flushed the nodes.
	Durable bool
}

// Asked describes the task of a step, and how its run was started.
type Asked struct {
	Nodes      cas.Reader
	Store      cas.Store // to read again what the agent may have damaged
	Thread     *thread.Thread
	Workflow   protocol.Workflow
	Head       protocol.Hash // head of the thread
	Role       string
	Prompt     string // "" if only its hash is known
	PromptHash protocol.Hash
	LimitBase  int
	Cwd        string // directory of the task
	RanIn      string // directory in the run's record
	StartedAt  int64  // start of the run in Unix milliseconds; 0 if unknown
	Now        int64  // Unix milliseconds
	// Place returns the directory in which a role would work.
	Place func(role, location string) (string, error)
}

// Check checks a step. A head must never point to a step from which the thread cannot continue.
func (a Asked) Check(ctx context.Context, result protocol.Result) (Accepted, error) {
	hash := result.StepHash
	got := Accepted{Hash: hash, Durable: result.Durable}
	node, err := a.Nodes.Get(ctx, hash)
	if err == nil {
		got.Step, err = cas.As[protocol.Step](ctx, a.Nodes, node)
	}
	if err != nil {
		return got, notAStep(hash, err)
	}
	if reason := a.misplaced(got.Step); reason != "" {
		return got, Rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	if reason := a.misstated(ctx, got.Step); reason != "" {
		return got, Rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	if err := a.checkOutput(ctx, got.Step); err != nil {
		return got, unusable(hash, "output", err)
	}
	// Read the head again, since the agent may have damaged it.
	if _, err := a.Store.Get(ctx, a.Head); err != nil {
		return got, fmt.Errorf("node before step %s: %w", hash, err)
	}
	named, err := Contents(ctx, a.Nodes, got.Step, !got.Durable)
	if err != nil {
		return got, unusable(hash, "content", err)
	}
	reason, err := a.borrowed(ctx, got.Step)
	if err != nil {
		return got, unusable(hash, "content", err)
	}
	if reason != "" {
		return got, Rejected(hash, protocol.CodeAgent, "step %s %s", hash, reason)
	}
	got.Nodes = append(named, node)
	return got, nil
}

// misplaced returns how a step differs from the required one, or "".
func (a Asked) misplaced(s protocol.Step) string {
	t, wantPrev, visits := a.Thread, protocol.Hash("none"), map[string]int{}
	if t.Last != nil {
		wantPrev = t.Head
		visits = maps.Clone(t.Last.Visits)
	}
	visits[a.Role]++
	prev := protocol.Hash("none")
	if s.Prev != nil {
		prev = *s.Prev
	}
	switch {
	case s.Start != t.StartHash:
		return fmt.Sprintf("belongs to another thread: its start is %s, not %s", s.Start, t.StartHash)
	case prev != wantPrev:
		return fmt.Sprintf("does not follow the head: its prev is %s, not %s", prev, wantPrev)
	case protocol.IsEngine(s.Agent) && a.Workflow.Roles[a.Role].Player() == protocol.PlayedByAgent:
		return fmt.Sprintf("names %s as its agent, which is reserved", s.Agent)
	case s.Role != a.Role:
		return fmt.Sprintf("has role %q, not %q", s.Role, a.Role)
	case s.Index != t.Len():
		return fmt.Sprintf("has index %d, not %d", s.Index, t.Len())
	case s.LimitBase != a.LimitBase:
		return fmt.Sprintf("has limitBase %d, not %d", s.LimitBase, a.LimitBase)
	case !maps.Equal(s.Visits, visits):
		return fmt.Sprintf("has visits %v, not %v", s.Visits, visits)
	case s.Agent == "":
		return "does not name its agent"
	}
	return ""
}

// checkOutput checks that the output has the role's schema as its type and is valid. A role may suspend
// instead.
func (a Asked) checkOutput(ctx context.Context, s protocol.Step) error {
	if s.Error != nil {
		return fmt.Errorf("%w: it is marked as a failure", errWrongContent)
	}
	node, err := a.Nodes.Get(ctx, s.Output)
	if err != nil {
		return err
	}
	want := a.Workflow.Roles[a.Role].Frontmatter
	kind := protocol.KindSuspend
	if node.Type != want {
		kind, _, err = a.Store.Kinds().Of(ctx, a.Nodes, node.Type)
	}
	if err != nil || kind != protocol.KindSuspend {
		return fmt.Errorf("%w: its type is %s, the schema of role %q is %s", errWrongContent, node.Type, a.Role, want)
	}
	return cas.Verify(ctx, a.Nodes, s.Output)
}

// Contents reads all nodes of a step except its chain: output, detail, turns, and the texts of its prompts.
// It skips redacted nodes, except that a redacted output is an error, because a thread cannot continue
// without it. It returns the nodes only if keep is set, because they may not fit in memory.
func Contents(ctx context.Context, r cas.Reader, s protocol.Step, keep bool) ([]cas.Node, error) {
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

// collector collects nodes, without redacted ones.
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

// takeParts collects the turns of a detail, which must be turns, and its requests.
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

var errWrongContent = errors.New("not the requested step")

// Rejected returns a [*Rejection] of a step.
func Rejected(step protocol.Hash, code protocol.Code, format string, args ...any) error {
	return &Rejection{Step: step, Why: fault.New(code, "the agent's result was rejected: "+format, args...)}
}

// notAStep returns the error for a result whose hash is not a step's.
func notAStep(hash protocol.Hash, err error) error {
	var kind *cas.TypeError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return Rejected(hash, protocol.CodeAgent, "%s is not in the store", hash)
	case errors.As(err, &kind):
		return Rejected(hash, protocol.CodeAgent, "%s is not a step", hash)
	case fault.IsDamage(err):
		return Rejected(hash, protocol.CodeCorrupt, "%v", err)
	}
	return err
}

// unusable returns the error for a missing or invalid node of a step. Damage on disk is not the agent's
// fault.
func unusable(step protocol.Hash, what string, err error) error {
	var corrupt *cas.CorruptError
	switch {
	case errors.As(err, &corrupt):
		return Rejected(step, protocol.CodeCorrupt, "the %s of step %s: %v", what, step, err)
	case fault.IsRedacted(err):
		return Rejected(step, protocol.CodeRedacted, "the %s of step %s was redacted earlier and cannot be stored "+
			"again: %v",
			what, step, err)
	case errors.Is(err, errWrongContent), fault.IsDamage(err):
		return Rejected(step, protocol.CodeAgent, "the %s of step %s: %v", what, step, err)
	}
	return err
}
