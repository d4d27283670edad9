package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// What a whole run may cost, in dollars, tokens and time: the workflow says it, or the
// config, or a person for one thread; people grant more. What it has cost is the sum
// over its chain, with failed tries, replaced steps, and without what a fork has taken
// over. No sum ever begins anew.

// facts is what is known of a thread besides its chain.
func (e *Engine) facts(ctx context.Context, id string) (heads.Facts, error) {
	if e.factsOf != nil {
		if facts, known := e.factsOf(id); known {
			return facts, nil
		}
	}
	return e.Heads.Facts(ctx, id)
}

// knowing returns an engine that takes the facts of a thread from who holds it.
func (e *Engine) knowing(h *lockedThread) *Engine {
	with := *e
	with.factsOf = func(thread string) (heads.Facts, bool) { return h.facts, thread == h.id }
	return &with
}

// said adds what people have said of a thread's limits to those of its workflow.
func said(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	if own.MaxCostUSD > 0 {
		l.MaxCostUSD = own.MaxCostUSD
	}
	if own.MaxTokens > 0 {
		l.MaxTokens = own.MaxTokens
	}
	if own.MaxTimeMs > 0 {
		l.MaxTimeMs = own.MaxTimeMs
	}
	return l
}

// granted adds what was granted beyond limits.
func granted(l protocol.Limits, own *heads.Limits) protocol.Limits {
	if own == nil {
		return l
	}
	if l.MaxCostUSD > 0 {
		l.MaxCostUSD = protocol.RoundUSD(l.MaxCostUSD + own.More.CostUSD)
	}
	if l.MaxTokens > 0 {
		l.MaxTokens += own.More.Tokens
	}
	if l.MaxTimeMs > 0 {
		l.MaxTimeMs += own.More.TimeMs
	}
	return l
}

// bounded reports whether limits are of what a run costs.
func bounded(l protocol.Limits) bool { return l.MaxCostUSD > 0 || l.MaxTokens > 0 || l.MaxTimeMs > 0 }

// spent is what a thread has cost by itself, up to its head.
func (e *Engine) spent(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) (moderator.Spent, error) {
	sum, err := e.sumUp(ctx, id, head)
	if err != nil {
		return moderator.Spent{}, err
	}
	all := spentOf(sum)
	if facts.Fork != nil {
		before, err := e.before(ctx, id, facts.Fork.Step)
		if err != nil {
			return moderator.Spent{}, err
		}
		all = less(all, spentOf(before))
	}
	if own := facts.Limits; own != nil {
		if r := own.Replaced; r.Totals != nil {
			all = plus(all, spentOf(sums{Totals: *r.Totals, Unpriced: r.Unpriced, Uncounted: r.Uncounted, Blind: r.Blind}))
		}
		all = less(all, moderator.Spent{Unpriced: own.More.Unpriced, Uncounted: own.More.Uncounted, Blind: own.More.Blind})
	}
	return all, nil
}

func spentOf(s sums) moderator.Spent {
	out := moderator.Spent{TimeMs: s.DurationMs, Unpriced: s.Unpriced, Uncounted: s.Uncounted, Blind: s.Blind}
	if s.Usage != nil {
		out.Tokens = s.Usage.Tokens()
		if s.Usage.CostUSD != nil {
			out.CostUSD = *s.Usage.CostUSD
		}
	}
	return out
}

func plus(a, b moderator.Spent) moderator.Spent {
	return moderator.Spent{
		CostUSD: protocol.RoundUSD(a.CostUSD + b.CostUSD), Tokens: a.Tokens + b.Tokens, TimeMs: a.TimeMs + b.TimeMs,
		Unpriced: a.Unpriced + b.Unpriced, Uncounted: a.Uncounted + b.Uncounted, Blind: a.Blind + b.Blind,
	}
}

// less is a without b, and nothing below zero.
func less(a, b moderator.Spent) moderator.Spent {
	return moderator.Spent{
		CostUSD: max(0, protocol.RoundUSD(a.CostUSD-b.CostUSD)), Tokens: max(0, a.Tokens-b.Tokens), TimeMs: max(0, a.TimeMs-b.TimeMs),
		Unpriced: max(0, a.Unpriced-b.Unpriced), Uncounted: max(0, a.Uncounted-b.Uncounted), Blind: max(0, a.Blind-b.Blind),
	}
}

// budget is what the run may still cost, by its own limits and by those of the threads
// whose part it plays.
func (p *position) budget() protocol.Budget {
	var b protocol.Budget
	for _, held := range append([]bound{{limits: p.state.Limits, spent: p.state.Spent}}, p.bounds...) {
		l, spent := held.limits, held.spent
		if l.MaxCostUSD > 0 {
			b.CostUSD = least(b.CostUSD, protocol.RoundUSD(max(0, l.MaxCostUSD-spent.CostUSD)))
		}
		if l.MaxTokens > 0 {
			b.Tokens = least(b.Tokens, max(0, l.MaxTokens-spent.Tokens))
		}
		if l.MaxTimeMs > 0 {
			b.TimeMs = least(b.TimeMs, max(0, l.MaxTimeMs-spent.TimeMs))
		}
	}
	return b
}

func least[T int64 | float64](before *T, now T) *T {
	if before != nil {
		now = min(now, *before)
	}
	return &now
}

// withinBudget refuses to begin what a person asks for although the run has cost what
// it may.
func (p *position) withinBudget(role string) error {
	reason, over := moderator.OverBudget(p.state, role)
	if !over {
		return nil
	}
	return hinted(fail(protocol.CodeBudget, "thread %s: %s", p.id, reason), p.moreHints()...)
}

// moreHints say how to grant more, to the thread whose limit is reached.
func (p *position) moreHints() []string {
	if p.heldBy != nil {
		return moreHints(p.heldBy.thread, p.heldBy.limits)
	}
	return moreHints(p.id, p.state.Limits)
}

// moreHints say how to grant more.
func moreHints(id string, l protocol.Limits) []string {
	hints := []string{"uwf thread resume " + id + " --more grants as much again"}
	switch {
	case l.MaxCostUSD > 0:
		return append(hints, "uwf thread resume "+id+" --more-cost 5 grants $5 more")
	case l.MaxTokens > 0:
		return append(hints, "uwf thread resume "+id+" --more-tokens 100000 grants that many more")
	}
	return append(hints, "uwf thread resume "+id+" --more-time 30m grants that much more")
}

// More is what a person grants a run beyond its limits.
type More struct {
	CostUSD float64
	Tokens  int64
	Time    time.Duration
	Again   bool // as much as the limits are, of what is used up
}

func (m More) asked() bool { return m.Again || m.CostUSD > 0 || m.Tokens > 0 || m.Time > 0 }

// Grant sets limits of what a thread may cost, those that are not zero, and grants more
// than the limits. It returns what holds now, a line each. What a run has cost beyond a
// limit is not taken out of what is granted. Errors are *protocol.Error.
func (e *Engine) Grant(ctx context.Context, thread string, l protocol.Limits, m More) ([]string, error) {
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, coded(err)
	}
	defer h.release()
	if h.ended != nil && h.ended.Status != protocol.StatusCompleted {
		return nil, hasEnded(h)
	}
	if h.facts, err = e.Heads.Facts(ctx, h.id); err != nil {
		return nil, coded(err)
	}
	own := h.ownLimits()
	set(&own, l)
	h.facts.Limits = &own
	pos, err := e.knowing(h).position(ctx, h.id, h.head)
	if err == nil {
		err = pos.problem
	}
	if err != nil {
		return nil, coded(err)
	}
	var lines []string
	if m.asked() {
		if lines, err = grant(&own, pos, m); err != nil {
			return nil, err
		}
	}
	if err := e.Heads.SetFacts(ctx, h.id, heads.Facts{Limits: &own}); err != nil {
		return nil, coded(err)
	}
	return lines, nil
}

// set takes over the limits that are not zero. What was granted before was granted
// beyond another limit.
func set(own *heads.Limits, l protocol.Limits) {
	if l.MaxCostUSD > 0 {
		own.MaxCostUSD, own.More.CostUSD = l.MaxCostUSD, 0
	}
	if l.MaxTokens > 0 {
		own.MaxTokens, own.More.Tokens = l.MaxTokens, 0
	}
	if l.MaxTimeMs > 0 {
		own.MaxTimeMs, own.More.TimeMs = l.MaxTimeMs, 0
	}
}

// grant adds to what was granted.
func grant(own *heads.Limits, p *position, m More) ([]string, error) {
	now, spent := p.state.Limits, p.state.Spent // with what was granted before
	base := now
	base.MaxCostUSD, base.MaxTokens, base.MaxTimeMs = now.MaxCostUSD-own.More.CostUSD, now.MaxTokens-own.More.Tokens, now.MaxTimeMs-own.More.TimeMs
	if m.Again {
		reached := nearly(now, spent)
		switch p.used.outcome { // a reply more would not have fitted, however much is left
		case protocol.OutcomeMaxCost:
			reached.MaxCostUSD = now.MaxCostUSD
		case protocol.OutcomeMaxTokens:
			reached.MaxTokens = now.MaxTokens
		case protocol.OutcomeMaxTime:
			reached.MaxTimeMs = now.MaxTimeMs
		}
		if _, over := moderator.OverBudget(p.state, ""); !over && reached == (protocol.Limits{}) {
			if p.used.outcome != "" {
				return nil, nil // the step's own budget: it has as much again anyway
			}
			return nil, hinted(fail(protocol.CodeFailed, "thread %s has not reached a limit of what it may cost: there is nothing to grant again", p.id),
				"uwf thread resume "+p.id, "uwf thread resume "+p.id+" --more-cost 5 grants a certain amount")
		}
		if reached.MaxCostUSD > 0 {
			m.CostUSD = max(m.CostUSD, base.MaxCostUSD)
		}
		if reached.MaxTokens > 0 {
			m.Tokens = max(m.Tokens, base.MaxTokens)
		}
		if reached.MaxTimeMs > 0 {
			m.Time = max(m.Time, ms(base.MaxTimeMs))
		}
	}
	for _, asked := range []struct {
		more, limit bool
		name, flag  string
	}{
		{m.CostUSD > 0, now.MaxCostUSD > 0, "maxCostUsd", "--max-cost"}, {m.Tokens > 0, now.MaxTokens > 0, "maxTokens", "--max-tokens"}, {m.Time > 0, now.MaxTimeMs > 0, "maxTime", "--max-time"},
	} {
		if asked.more && !asked.limit {
			return nil, hinted(fail(protocol.CodeUsage, "thread %s has no limit %s: there is nothing to grant beyond it", p.id, asked.name),
				"uwf thread resume "+p.id+" "+asked.flag+" … sets one")
		}
	}
	var lines []string
	if m.CostUSD > 0 {
		total := protocol.RoundUSD(max(now.MaxCostUSD, spent.CostUSD) + m.CostUSD)
		own.More.CostUSD = protocol.RoundUSD(total - base.MaxCostUSD)
		lines = append(lines, fmt.Sprintf("granted %s more: the run has cost %s, and may cost %s in all", protocol.Dollars(m.CostUSD), protocol.Dollars(spent.CostUSD), protocol.Dollars(total)))
	}
	if m.Tokens > 0 {
		total := min(max(now.MaxTokens, spent.Tokens)+m.Tokens, protocol.MaxFigure)
		own.More.Tokens = total - base.MaxTokens
		lines = append(lines, fmt.Sprintf("granted %d more tokens: the run has used %d, and may use %d in all", m.Tokens, spent.Tokens, total))
	}
	if m.Time > 0 {
		total := max(now.MaxTimeMs, spent.TimeMs) + m.Time.Milliseconds()
		own.More.TimeMs = total - base.MaxTimeMs
		lines = append(lines, fmt.Sprintf("granted %s more: the steps of the run have taken %s, and may take %s in all", protocol.Span(m.Time), protocol.Span(ms(spent.TimeMs)), protocol.Span(ms(total))))
	}
	if n, _ := spent.Unheld(now); n > 0 {
		own.More.Unpriced, own.More.Uncounted, own.More.Blind = own.More.Unpriced+spent.Unpriced, own.More.Uncounted+spent.Uncounted, own.More.Blind+spent.Blind
		lines = append(lines, fmt.Sprintf("accepted that it is not known what %d of its runs of agents have cost or used", n))
	}
	return lines, nil
}

// nearly are the limits that are used up, or that leave so little that an agent which
// keeps to them has ended before its work was done.
func nearly(l protocol.Limits, spent moderator.Spent) (reached protocol.Limits) {
	const most = 0.8
	if spent.CostUSD >= most*l.MaxCostUSD {
		reached.MaxCostUSD = l.MaxCostUSD
	}
	if float64(spent.Tokens) >= most*float64(l.MaxTokens) {
		reached.MaxTokens = l.MaxTokens
	}
	if float64(spent.TimeMs) >= most*float64(l.MaxTimeMs) {
		reached.MaxTimeMs = l.MaxTimeMs
	}
	return reached
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// ownLimits are what people have said of the thread's limits.
func (h *lockedThread) ownLimits() heads.Limits {
	if h.facts.Limits == nil {
		return heads.Limits{}
	}
	return *h.facts.Limits
}

// keepReplaced keeps what the head has cost, that the step of this attempt is about to
// take the place of. It is counted once, however often that is tried.
func (a *attempt) keepReplaced(ctx context.Context) error {
	own := a.locked.ownLimits()
	r := own.Replaced
	if r.Last == a.locked.head {
		return nil
	}
	old, err := cas.Read[protocol.Step](ctx, a.nodes(), a.locked.head)
	if err != nil {
		return err
	}
	sum := sums{Unpriced: r.Unpriced, Uncounted: r.Uncounted, Blind: r.Blind}
	if r.Totals != nil {
		sum.Totals = *r.Totals
	}
	sum.add(old)
	own.Replaced = heads.Replaced{Last: a.locked.head, Totals: &sum.Totals, Unpriced: sum.Unpriced, Uncounted: sum.Uncounted, Blind: sum.Blind}
	if err := a.Heads.SetFacts(ctx, a.locked.id, heads.Facts{Limits: &own}); err != nil {
		return err
	}
	a.locked.facts.Limits = &own
	return nil
}

// limitsSaid are the facts of a thread that begins with limits of its own.
func limitsSaid(l protocol.Limits) *heads.Limits {
	if !bounded(l) {
		return nil
	}
	var own heads.Limits
	set(&own, l)
	return &own
}

// unknownCost says, once a step is made, that a limit cannot count it.
func (a *attempt) unknownCost(s protocol.Step) {
	l := a.pos.state.Limits
	if l.MaxCostUSD == 0 || s.Usage.IsPriced() {
		return
	}
	words := []string{fmt.Sprintf("what this step of role %q has cost is unknown", s.Role)}
	if l.MaxTokens > 0 && s.Usage.Counted() {
		words = append(words, "its tokens count, and maxTokens bounds the run")
	}
	a.warn(strings.Join(words, ": "))
}

// unpriced says why a limit of cost cannot hold an agent, "" if it may. Where no limit
// of tokens can hold it either, it is refused before it begins.
func (e *Engine) unpriced(ctx context.Context, l protocol.Limits, cmd command, workflow, role string) (string, error) {
	if l.MaxCostUSD == 0 {
		return "", nil
	}
	c, err := e.Config(ctx)
	if err != nil {
		return "", err
	}
	why := config.NoPrice(c, cmd.argv[0], modelFlag(cmd.argv), cmd.alias, workflow, role, e.Env)
	if why == "" || l.MaxTokens > 0 {
		return why, nil
	}
	refusal := fail(protocol.CodeInvalid, "the run may cost %s (maxCostUsd), but the cost of role %q cannot be tracked: %s, and there is no token limit", protocol.Dollars(l.MaxCostUSD), role, why)
	return "", hinted(refusal, "uwf config set models.<alias>.price.input <dollars per million tokens>, and price.output", "--max-tokens 2000000 bounds the run by tokens instead")
}

// CheckBudget returns why a run of a workflow could not be held to its limits, if it
// could not: l are those that are said for this run alone. Errors are *protocol.Error.
func (e *Engine) CheckBudget(ctx context.Context, w protocol.Workflow, l protocol.Limits, o StepOptions) error {
	e = e.configOnce()
	inForce, err := e.limitsOf(ctx, w)
	if err != nil {
		return coded(err)
	}
	inForce = said(inForce, limitsSaid(l))
	if inForce.MaxCostUSD == 0 {
		return nil
	}
	for _, role := range flow.Roles(w) {
		if w.Roles[role].Player() != protocol.PlayedByAgent {
			continue
		}
		cmd, err := e.agentFor(ctx, o, w.Name, role)
		if err != nil {
			continue // whoever runs the role will say so
		}
		why, err := e.unpriced(ctx, inForce, cmd, w.Name, role)
		if err != nil {
			return coded(err)
		}
		if why != "" {
			e.warn(fmt.Sprintf("what role %q costs will be unknown (%s): maxTokens bounds it instead of maxCostUsd", role, why))
		}
	}
	return nil
}

// Spending is what a thread may cost and has cost; no limit of cost, no sums.
func (e *Engine) Spending(ctx context.Context, thread string) (protocol.Limits, moderator.Spent, error) {
	head, err := e.Head(ctx, thread)
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, err
	}
	p, err := e.position(ctx, thread, head)
	if err == nil && p.problem != nil {
		err = p.problem
	}
	if err != nil {
		return protocol.Limits{}, moderator.Spent{}, coded(err)
	}
	return p.state.Limits, p.state.Spent, nil
}
