// Package thread reads and extends the chain of a thread as typed values. It reads lazily: opening a thread
// of any length reads only its head and its start. If the head is a step of the original uwf, it counts the
// steps: those don't contain their place in the chain, which is their index and visits.
//
// Invariants of a chain: each step except the first references its predecessor, whose index is one less; all
// reference the same start. They are checked as the steps are read. A missing node is an error that wraps
// [cas.ErrNotFound].
package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/sorting"
)

// Thread is a chain, opened at its head.
type Thread struct {
	Head      cas.Hash
	StartHash cas.Hash
	Start     protocol.Start
	Last      *Step // nil without steps

	reader cas.Reader
}

// Step is a step with its hash.
type Step struct {
	Hash      cas.Hash
	Timestamp int64
	protocol.Step

	unplaced bool // it is of the original uwf: its place follows from the chain
}

// Open reads the head and the start. Errors: [cas.ErrNotFound], a [*cas.TypeError] if head is neither a start
// nor a step, a [*cas.CorruptError].
func Open(ctx context.Context, r cas.Reader, head cas.Hash) (*Thread, error) {
	n, err := r.Get(ctx, head)
	if err != nil {
		return nil, err
	}
	t := &Thread{Head: head, StartHash: head, reader: r}
	t.Start, err = cas.As[protocol.Start](ctx, r, n)
	if _, ok := errors.AsType[*cas.TypeError](err); !ok {
		return t, err // the head is the start, or unreadable
	}
	last, err := t.stepOf(ctx, n)
	if err != nil {
		return nil, err
	}
	if last.unplaced {
		if err := t.place(ctx, &last); err != nil {
			return nil, err
		}
	}
	t.Last, t.StartHash = &last, last.Start
	if t.Start, err = cas.Read[protocol.Start](ctx, r, last.Start); err != nil {
		return nil, fmt.Errorf("start of step %s: %w", head, err)
	}
	return t, nil
}

// Task returns the prompt of the start for people, without the tags around quoted answers, which are for
// models.
func (t *Thread) Task() string { return promptquote.Plain(t.Start.Prompt) }

// Len returns the number of steps.
func (t *Thread) Len() int {
	if t.Last == nil {
		return 0
	}
	return t.Last.Index + 1
}

// Steps yields the steps, newest first, and reads one node for each. Inconsistent links are a
// [*cas.CorruptError]; it stops after an error.
func (t *Thread) Steps(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if t.Last == nil {
			return
		}
		for s := *t.Last; yield(s, nil) && s.Prev != nil; {
			prev, err := t.before(ctx, s)
			if err != nil {
				yield(Step{}, err)
				return
			}
			s = prev
		}
	}
}

// before reads the predecessor of s, whose place is known, and checks that they fit together.
func (t *Thread) before(ctx context.Context, s Step) (Step, error) {
	prev, err := t.link(ctx, s)
	if err != nil {
		return Step{}, err
	}
	if prev.unplaced {
		prev.follow(s)
		return prev, prev.checkPlace()
	}
	if prev.Index != s.Index-1 {
		return Step{}, badLink(s, "has index %d, want %d", prev.Index, s.Index-1)
	}
	return prev, nil
}

// link reads the step that s references as its predecessor.
func (t *Thread) link(ctx context.Context, s Step) (Step, error) {
	n, err := t.reader.Get(ctx, *s.Prev)
	if err != nil {
		return Step{}, fmt.Errorf("step before %s: %w", s.Hash, err)
	}
	prev, err := t.stepOf(ctx, n)
	if _, ok := errors.AsType[*cas.TypeError](err); ok {
		return Step{}, badLink(s, "is not a step")
	}
	if err == nil && prev.Start != s.Start {
		err = badLink(s, "belongs to another start, %s", prev.Start)
	}
	return prev, err
}

func badLink(s Step, reason string, args ...any) error {
	return &cas.CorruptError{Hash: s.Hash, Reason: fmt.Sprintf("its previous node %s ", *s.Prev) + fmt.Sprintf(reason,
		args...)}
}

// stepOf decodes a step and checks what is possible without its neighbors.
func (t *Thread) stepOf(ctx context.Context, n cas.Node) (Step, error) {
	out := Step{Hash: n.Hash, Timestamp: n.Timestamp}
	var err error
	out.Step, err = cas.As[protocol.Step](ctx, t.reader, n)
	if _, ok := errors.AsType[*cas.TypeError](err); ok {
		original, ok, failed := cas.OriginalStep(ctx, t.reader, n)
		if failed != nil {
			return Step{}, failed
		}
		if ok {
			out.Step, out.unplaced = original, true
			return out, nil
		}
	}
	if err != nil {
		return Step{}, err
	}
	return out, out.checkPlace()
}

// checkPlace checks that exactly the first step has no predecessor.
func (s Step) checkPlace() error {
	if s.Index < 0 || (s.Index == 0) != (s.Prev == nil) {
		why := map[bool]string{true: "no", false: "a"}[s.Prev == nil]
		return &cas.CorruptError{Hash: s.Hash, Reason: fmt.Sprintf("its index is %d, but it has %s previous step", s.Index, why)}
	}
	return nil
}

// Workflow reads the workflow that the thread runs.
func (t *Thread) Workflow(ctx context.Context) (protocol.Workflow, error) {
	w, err := cas.Read[protocol.Workflow](ctx, t.reader, t.Start.Workflow)
	if err != nil {
		return w, fmt.Errorf("workflow of start %s: %w", t.StartHash, err)
	}
	return w, nil
}

// Append adds a step after the head to a batch and returns its hash. It derives start, prev, index and visits from the
// head; limitBase is at least that of the head. The Thread stays unchanged: after moving the head, open it again. It
// returns the errors of [cas.Batch.Add].
func (t *Thread) Append(ctx context.Context, b *cas.Batch, s protocol.Step) (cas.Hash, error) {
	s.Start, s.Index, s.Visits = t.StartHash, t.Len(), map[string]int{}
	if t.Last != nil {
		s.Prev = &t.Last.Hash
		s.LimitBase = max(s.LimitBase, t.Last.LimitBase)
		maps.Copy(s.Visits, t.Last.Visits)
	}
	s.Visits[s.Role]++
	return b.Add(ctx, s)
}

// place computes the index and visits of a step of the original by reading the chain back to its beginning or
// to one of our steps.
func (t *Thread) place(ctx context.Context, last *Step) error {
	visits := map[string]int{last.Role: 1}
	index := 0
	seen := map[cas.Hash]bool{last.Hash: true}
	for s := *last; s.Prev != nil; {
		if seen[*s.Prev] {
			return badLink(s, "comes after it as well: the chain has a cycle")
		}
		seen[*s.Prev] = true
		prev, err := t.link(ctx, s)
		if err != nil {
			return err
		}
		if !prev.unplaced {
			index += prev.Index + 1
			for role, n := range prev.Visits {
				visits[role] += n
			}
			break
		}
		index++
		visits[prev.Role]++
		s = prev
	}
	last.settle(index, visits)
	return nil
}

// follow sets the place of a step of the original from that of its successor.
func (s *Step) follow(next Step) {
	visits := maps.Clone(next.Visits)
	if visits[next.Role]--; visits[next.Role] <= 0 {
		delete(visits, next.Role)
	}
	s.settle(next.Index-1, visits)
}

// settle sets a step's place. The original uwf has no limits, so its steps don't count towards any.
func (s *Step) settle(index int, visits map[string]int) {
	s.Index, s.Visits, s.LimitBase, s.unplaced = index, visits, index+1, false
}

// Output is the output of a step.
type Output struct {
	Type    cas.Hash          // the role's schema, or the suspend kind
	Value   any               // a JSON value
	Suspend *protocol.Suspend // set if the step suspended
}

// Output reads the output of a step.
func (t *Thread) Output(ctx context.Context, s Step) (Output, error) {
	out, err := readOutput(ctx, t.reader, s.Output)
	if err != nil {
		return Output{}, fmt.Errorf("output of step %s: %w", s.Hash, err)
	}
	if why, ok := out.Value.(string); ok && s.Error != nil {
		out.Value = s.FailureAnswer(why)
	}
	return out, nil
}

// Shown is Output for display only: a redacted output is replaced by [cas.RedactedError.Value]. Don't base
// decisions on it.
func (t *Thread) Shown(ctx context.Context, s Step) (Output, error) {
	out, err := t.Output(ctx, s)
	if redacted, ok := cas.AsRedacted(err); ok {
		return Output{Type: redacted.Tombstone.Type, Value: redacted.Value()}, nil
	}
	return out, err
}

func readOutput(ctx context.Context, r cas.Reader, h cas.Hash) (Output, error) {
	n, err := r.Get(ctx, h)
	if err != nil {
		return Output{}, err
	}
	out := Output{Type: n.Type}
	if out.Value, err = n.Value(); err != nil {
		return Output{}, &cas.CorruptError{Hash: h, Reason: err.Error()}
	}
	if value, _ := out.Value.(map[string]any); value[protocol.StatusKey] != protocol.SuspendNode {
		return out, nil // the schema needn't be read
	}
	suspend, err := cas.As[protocol.Suspend](ctx, r, n)
	var other *cas.TypeError
	switch {
	case err == nil:
		out.Suspend = &suspend
	case !errors.As(err, &other):
		return Output{}, err
	}
	return out, nil
}

// Redacted is the role of a redacted turn, whose actual role is unknown.
const Redacted protocol.TurnRole = "redacted"

// ShownTurn reads a turn for display only: a redacted one has a note as its content. It returns the errors of
// [cas.Read].
func ShownTurn(ctx context.Context, r cas.Reader, h cas.Hash) (protocol.Turn, error) {
	turn, err := cas.Read[protocol.Turn](ctx, r, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return protocol.Turn{Role: Redacted, Content: redacted.Mark(), AtMs: redacted.Tombstone.At}, nil
	}
	return turn, err
}

// IsNoMessage reports whether an error of [ShownTurn] means that the node is missing or isn't a turn. A turn
// that an agent only announced might be a false claim.
func IsNoMessage(err error) bool {
	var other *cas.TypeError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &other)
}

// ShownDetail reads a detail for display only: a redacted one has a note as its outcome, and no turns. It
// returns the errors of [cas.Read].
func ShownDetail(ctx context.Context, r cas.Reader, h cas.Hash) (protocol.Detail, error) {
	detail, err := cas.Read[protocol.Detail](ctx, r, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return protocol.Detail{Outcome: redacted.Mark(), Turns: []cas.Hash{}}, nil
	}
	return detail, err
}

// Refused returns the rejected answers of a step, according to its last turns. It omits unreadable turns,
// which are shown elsewhere.
func Refused(ctx context.Context, r cas.Reader, detail cas.Hash) (all []protocol.Refused) {
	const most = 100 // turns: a correction doesn't repeat work
	d, err := ShownDetail(ctx, r, detail)
	if err != nil {
		return nil
	}
	for _, h := range d.Turns[max(0, len(d.Turns)-most):] {
		if turn, err := ShownTurn(ctx, r, h); err == nil && turn.Refused != nil {
			all = append(all, *turn.Refused)
		}
	}
	return all
}

// Content is Answer for display only: an answer that is possibly redacted is replaced by
// [cas.RedactedError.Mark].
func Content(ctx context.Context, r cas.Reader, detail cas.Hash) (string, error) {
	text, err := Answer(ctx, r, detail)
	if redacted, ok := cas.AsRedacted(err); ok {
		return redacted.Mark(), nil
	}
	return text, err
}

// Answer returns the agent's last answer in a step's detail; "" if there is none, or if the detail has the
// form of an unknown agent of the original. It reads turns backwards, usually only one. It returns the errors
// of [cas.Read], including a [*cas.RedactedError] for a turn whose role is unknown.
func Answer(ctx context.Context, r cas.Reader, detail cas.Hash) (string, error) {
	d, err := cas.Read[protocol.Detail](ctx, r, detail)
	var other *cas.TypeError
	if errors.As(err, &other) && r.Algorithm() == cas.XXH64 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, h := range slices.Backward(d.Turns) {
		turn, err := cas.Read[protocol.Turn](ctx, r, h)
		if err != nil {
			return "", fmt.Errorf("turn of detail %s: %w", detail, err)
		}
		if turn.Role == protocol.TurnAssistant && strings.TrimSpace(turn.Content) != "" {
			return turn.Content, nil
		}
	}
	return "", nil
}

// SessionID returns the id of the session in which a step was made. The original stores it in details rather
// than steps; "" if these have an unknown form, or are redacted. It returns the errors of [cas.Read].
func (t *Thread) SessionID(ctx context.Context, s Step) (string, error) {
	return SessionID(ctx, t.reader, s.Step)
}

// SessionID is [Thread.SessionID] for a step alone.
func SessionID(ctx context.Context, r cas.Reader, s protocol.Step) (string, error) {
	if s.SessionID != "" {
		return s.SessionID, nil
	}
	d, err := cas.Read[protocol.Detail](ctx, r, s.Detail)
	var other *cas.TypeError
	if _, redacted := cas.AsRedacted(err); redacted || errors.As(err, &other) {
		return "", nil
	}
	return d.SessionID, err
}

// Survivors searches the whole store for the remains of a chain whose node before a step is lost. It returns
// the newest steps that the chain might have included and whose chains are complete back to the start: one,
// unless forks have steps at the same place. It skips unreadable nodes.
func Survivors(ctx context.Context, s cas.Store, after Step) ([]cas.Hash, error) {
	var found []Step
	for h, err := range s.All(ctx, "") {
		if err != nil || h == *after.Prev {
			continue
		}
		n, err := s.Get(ctx, h)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			continue
		}
		if step, err := cas.As[protocol.Step](ctx, s, n); err == nil && precedes(step, after) {
			found = append(found, Step{Hash: h, Step: step})
		}
	}
	sorting.Func(found, func(a, b Step) int { return cmp.Or(b.Index-a.Index, cmp.Compare(a.Hash, b.Hash)) })
	var whole []cas.Hash
	for i, step := range found {
		if len(whole) > 0 && step.Index != found[i-1].Index {
			break
		}
		if isComplete(ctx, s, step.Hash) {
			whole = append(whole, step.Hash)
		}
	}
	return whole, nil
}

// precedes reports whether a step can be an ancestor of another: it has the same start, ended before the
// other started, and has no higher visit counts.
func precedes(s protocol.Step, after Step) bool {
	if s.Start != after.Start || s.Index >= after.Index-1 || s.CompletedAtMs > after.StartedAtMs {
		return false
	}
	for role, n := range s.Visits {
		if n > after.Visits[role] {
			return false
		}
	}
	return true
}

// isComplete reads a chain back to its start, including the outputs of its steps.
func isComplete(ctx context.Context, s cas.Store, head cas.Hash) bool {
	t, err := Open(ctx, s, head)
	if err != nil {
		return false
	}
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return false
		}
		if _, err := t.Shown(ctx, step); err != nil {
			return false
		}
	}
	return true
}
