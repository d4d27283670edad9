package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/internal/verify"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/runfiles"
)

// A visit is one pass through a role. It is tried until it yields a step: again by the same agent if the
// failure may be temporary, later if the provider reports when its limit resets, or by another agent. The
// step records the failed tries and their cost.

// visitKey returns a key that all tries of a visit share, unique to the visit.
func (a *attempt) visitKey() string {
	of := []string{a.locked.id, string(a.pos.Thread.Head), a.task.role, string(a.task.promptHash)}
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(sum[:])[:26]
}

// play makes the visit, with retries and fallback agents.
func (a *attempt) play(ctx context.Context, o StepOptions) (out protocol.StepOutput, err error) {
	if a.cmd.Plain != nil {
		if out, err = a.run(ctx); err != nil {
			a.conclude(decide.AfterFailure(a.failure(err, decide.Policy{}), decide.Policy{}))
		}
		return out, err
	}
	c, err := a.reader.Config(ctx)
	if err != nil {
		return out, err
	}
	a.day = a.e.accounts().Today(c.Limits)
	first := retry.Of(c, a.cmd.Alias)
	if first.Fallback, err = a.resumeFallback(ctx, c, first.Fallback, o); err != nil {
		return out, err
	}
	defer func() { a.endWait(err) }()
	var failed error // error of the last try; nil if none has failed
	for place := a.task.cwd; ; {
		p := retry.Of(c, a.cmd.Alias)
		p.Fallback, p.FallbackOn = first.Fallback, first.FallbackOn
		if err := a.enter(ctx, c, p, o.Wake); err != nil {
			return out, fault.Ended(ctx, errors.Join(err, failed))
		}
		if a.pass != nil {
			a.runs++
			a.failedTry, a.task.cwd, a.retries = nil, place, max(0, p.Rounds()-a.runs)
			out, failed = a.run(ctx)
			if a.leave(failed); failed == nil {
				return out, nil
			}
		}
		switch then := decide.AfterFailure(a.failure(failed, p), p); then.Kind {
		case decide.ThenRunAgain:
			if err := a.pause(ctx, p, then.Pause); err != nil {
				return out, fault.Ended(ctx, errors.Join(err, failed))
			}
		case decide.ThenFallBack:
			if err := a.fallBack(ctx, c, first.Fallback[0], o); err != nil {
				return out, errors.Join(failed, err)
			}
			first.Fallback = first.Fallback[1:]
		case decide.ThenAwaitReset:
			return a.park(ctx, a.sooner())
		case decide.ThenAwaitDay:
			return a.park(ctx, a.notStarted(a.day.UsedUp(), ""))
		default:
			a.conclude(then)
			return out, failed
		}
	}
}

// failure describes a failed try, or an agent that was not started.
func (a *attempt) failure(failed error, p decide.Policy) decide.Failure {
	now := a.reader.Env.Now()
	f := decide.Failure{
		NotStarted: a.pass == nil, Runs: a.runs, Reset: max(0, a.blocked.Until().Sub(now)), Stopped: a.dir.StopRequested(a.record),
		Soon: a.blocked.Start(now, p, time.Time{}) != limits.MustNotStart, NoDay: a.day.UsedUp() != limits.Limit{},
	}
	if _, f.NoBudget = moderator.OverBudget(a.pos.State, a.task.role); f.NotStarted {
		return f
	}
	if a.failedTry != nil {
		f.Kind = a.failedTry.Kind
	}
	code := fault.Of(failed).Code
	ended := a.record.Status == rundir.Failed || a.record.Status == rundir.Rejected
	f.Own = ended && (code == protocol.CodeAgent || code == protocol.CodeTimeout) &&
		(a.cmd.Plain != nil || !protocol.OfMachine(failed))
	return f
}

// conclude records whether all retries are exhausted.
func (a *attempt) conclude(then decide.Then) {
	if a.record.Exhausted = then.Kind == decide.ThenExhausted; a.record.Exhausted {
		_ = a.dir.Write(a.record) // on failure, the run counts as failed and is tried again
	}
}

// blocked is a limit that keeps an agent from running. The zero value means none.
type blocked struct {
	limits.Limit
	why error
}

// sooner returns the earliest limit among the agent and its predecessors.
func (a *attempt) sooner() blocked {
	if a.soonest.Sooner(a.blocked.Limit) == a.soonest.Limit {
		return a.soonest
	}
	return a.blocked
}

// enter asks for a pass, under which the agent runs. If it gets none, the account is limited, and a.blocked
// holds the limit.
func (a *attempt) enter(ctx context.Context, c protocol.Config, p decide.Policy, wake bool) error {
	account := a.e.Casting().Account(ctx, a.cmd, a.pos.Workflow.Name, a.task.role)
	terms := limits.Terms{Policy: p, Day: a.day, Places: c.Concurrency[account.Name]}
	if a.reader.Env.Get(protocol.EnvRunDir) != "" {
		terms.Places = 0 // an agent started us and occupies our place, so waiting could last forever
	}
	if wake && a.e.driven != nil {
		terms.Since = a.e.driven.begun
	}
	report := sync.OnceFunc(func() {
		a.e.warn(fmt.Sprintf("role %q: agent %s waits: account %s is rate-limited or has no free slot "+
			"(concurrency.%s)",
			a.task.role, a.cmd.Name, account.Name, account.Name))
		a.e.report(Event{Kind: AgentStarted, Step: StepInfo{Thread: a.locked.id}})
	})
	terms.Waits = func(waited time.Duration) error {
		if waited > quiet {
			report()
		}
		return a.waits(ctx)
	}
	a.blocked = blocked{}
	pass, held, err := a.e.accounts().Enter(ctx, account, terms)
	if a.pass = pass; pass == nil && err == nil {
		a.blocked = a.notStarted(held, account.Name)
		a.reason = a.blocked.why.Error()
	}
	return err
}

// notStarted returns why the agent was not started: a limit of its account or of the day.
func (a *attempt) notStarted(l limits.Limit, account string) blocked {
	if l.Refusals == 0 {
		return blocked{l, fault.New(protocol.CodeLimit, "%s", l.Reason)}
	}
	until := l.Until().In(a.reader.Env.Now().Location()).Format(time.DateTime)
	return blocked{l, fault.New(protocol.CodeAgent, "agent %s was not started: account %s is rate-limited until "+
		"%s: %s",
		a.cmd.Name, account, until, l.Reason)}
}

// today returns the daily limit, which the user's config sets.
func (e *Engine) today(ctx context.Context) (limits.Day, error) {
	c, err := e.Reader.Config(ctx)
	return e.accounts().Today(c.Limits), err
}

// spend counts an agent's cost for today; step is "" if it failed.
func (a *attempt) spend(ctx context.Context, step protocol.Hash, u *protocol.Usage) (err error) {
	if a.pos.Workflow.Roles[a.task.role].Player() != protocol.PlayedByAgent {
		return nil
	}
	if a.day, err = a.e.today(ctx); err != nil {
		return err
	}
	return a.day.Count(a.locked.id, step, u)
}

// accountOf reports whether the accounts of all agents for a role are limited, and returns the limit that
// resets first. It only reads.
func (e *Engine) accountOf(
	ctx context.Context, pos *status.Position, role string, o StepOptions,
) (decide.Account, limits.Limit) {
	if pos.Workflow.Roles[role].Player() == protocol.PlayedByAgent || o.Scenario != "" {
		if day, err := e.today(ctx); err == nil && day.UsedUp() != (limits.Limit{}) {
			return decide.Limited, day.UsedUp()
		}
		if l, held := e.Casting().Limited(ctx, e.accounts(), o.Choices(), pos.Workflow.Name, role); held {
			return decide.Limited, l
		}
	}
	return decide.Free, limits.Limit{}
}

// quiet is the time that an agent waits before the wait is reported.
const quiet = 3 * time.Second

// waits records that the visit waits to start an agent, as a run that can be stopped. It returns an error if
// the visit must stop.
func (a *attempt) waits(ctx context.Context) (err error) {
	if a.waiting == nil {
		a.record = a.newRecord()
		if a.waiting, err = a.prepare(ctx); err != nil {
			return err
		}
	}
	if a.dir.StopRequested(a.record) {
		return a.stopped(fault.New(protocol.CodeTerminated, "thread %s was stopped while %q was waiting", a.locked.id, a.task.role))
	}
	return nil
}

// endWait ends the run of a visit that waited and started no agent. err is the reason; nil if it is recorded
// already.
func (a *attempt) endWait(err error) {
	if a.waiting != nil && err != nil {
		status := rundir.Failed
		if fault.IsSignal(err) || fault.Is(err, protocol.CodeTerminated) {
			status = rundir.Stopped
		}
		_ = a.failed(status, err)
	}
	a.leaveWait()
}

func (a *attempt) leaveWait() {
	if a.waiting != nil {
		_ = a.waiting.Unlock() // the lock ends with the process
		a.waiting = nil
	}
}

// leave returns the agent's pass and records how the provider responded.
func (a *attempt) leave(failed error) {
	defer a.pass.Leave()
	a.runs += a.repeated
	if a.reason = ""; a.failedTry != nil {
		a.reason = a.failedTry.Error
	}
	switch {
	case a.refused:
		limit := a.pass.Refused(limits.Refusal{RetryAt: a.retryAt, Reason: a.reason})
		a.blocked = blocked{limit, fault.New(protocol.CodeAgent, "the provider refused agent %s: %s", a.cmd.Name,
			a.reason)}
	case failed == nil:
		a.pass.Served()
	}
}

// pause waits before the agent runs again.
func (a *attempt) pause(ctx context.Context, p decide.Policy, wait time.Duration) error {
	a.e.warn(fmt.Sprintf("role %q: %s; attempt %d of %d in %s", a.task.role, plaintext.Line(a.failedTry.Error), a.runs+1,
		p.Attempts, wait.Round(time.Millisecond)))
	for ; wait > 0; wait -= retry.MaxWait {
		err := a.waits(ctx)
		if err == nil {
			err = retry.Pause(ctx, min(wait, retry.MaxWait))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resumeFallback switches to the agent that an interrupted visit had reached, and returns the remaining fallbacks.
// If all agents have been given up, it starts over with the first.
func (a *attempt) resumeFallback(ctx context.Context, c protocol.Config, all []string, o StepOptions) ([]string, error) {
	gone := a.dir.Tries(a.pos.Thread).GaveUp(a.visitKey())
	left := slices.DeleteFunc(slices.Clone(all), func(alias string) bool { return slices.Contains(gone, alias) })
	if len(left) == 0 || !slices.Contains(gone, a.cmd.Name) {
		return left, nil
	}
	return left[1:], a.replace(ctx, c, left[0], o)
}

// fallBack switches to the next agent. A later step checks the limits again.
func (a *attempt) fallBack(ctx context.Context, c protocol.Config, next string, o StepOptions) error {
	was := a.cmd.Name
	a.soonest = a.sooner()
	if tries := a.dir.Tries(a.pos.Thread); a.blocked.why == nil && len(tries) > 0 {
		tries[len(tries)-1].GaveUp = true
		if err := a.dir.KeepTries(tries); err != nil {
			return err
		}
	}
	if err := a.replace(ctx, c, next, o); err != nil {
		return err
	}
	a.runs = 0
	a.e.warn(fmt.Sprintf("role %q: agent %s gave up (%s); continuing with %s", a.task.role, was, plaintext.Line(a.reason),
		a.cmd.Name))
	return nil
}

// replace switches to a fallback agent.
func (a *attempt) replace(ctx context.Context, c protocol.Config, next string, o StepOptions) error {
	cmd, err := a.e.Casting().Fallback(c, next, o.Choices())
	if err != nil {
		return err
	}
	a.cmd = cmd
	_, err = a.e.Casting().Unpriced(ctx, a.pos.State.Limits, cmd, a.pos.Workflow.Name, a.task.role)
	return err
}

// tried records a failed try and its cost, if known.
func (a *attempt) tried(ran agentproc.Outcome, err error) {
	var missing *agentproc.NotFoundError
	if errors.As(err, &missing) {
		return // nothing had started
	}
	usage := retry.Usage(ran, a.cmd.Plain != nil, max(0, a.e.nowMs()-a.record.StartedAt))
	why := fmt.Sprintf("%.500s", strings.ToValidUTF8(a.reader.Secrets().Hide(retry.Brief(ran, err)), ""))
	a.failedTry = a.keepTry(a.cmd.Name, why, usage, retry.KindOf(ran, err))
	if budget.Bounded(a.pos.State.Limits) {
		a.pos.State.Spent = budget.WithTry(a.pos.State.Spent, *a.failedTry)
	}
}

// keepTry adds a failed try to those that the next step records.
func (a *attempt) keepTry(agent, why string, usage *protocol.Usage, kind protocol.FailureKind) *runfiles.Try {
	try := runfiles.Try{
		Try:   protocol.Try{Agent: agent, Error: why, Usage: usage, AtMs: a.e.nowMs()},
		Visit: a.visitKey(), Alias: agent, Kind: kind,
	}
	if err := a.dir.KeepTries(a.dir.Tries(a.pos.Thread).Add(try)); err != nil {
		a.e.warn("could not record the cost of a failed attempt: " + err.Error())
	}
	if err := a.spend(context.Background(), "", usage); err != nil { // count the cost even if the context has ended
		a.e.warn("could not count the cost of a failed attempt for limits.perDay: " + err.Error())
	}
	return &try
}

// park suspends the visit until a limit resets. No process waits for it.
func (a *attempt) park(ctx context.Context, first blocked) (out protocol.StepOutput, err error) {
	if a.record.StartedAt == 0 { // create a record of the reason and the user's prompt
		if err := a.waits(ctx); err != nil {
			return out, err
		}
	}
	if day, err := a.e.today(ctx); err == nil && first.Refusals == 0 {
		_ = day.Note() // on failure, the next attempt records it
	}
	_ = a.failed(rundir.Failed, first.why)
	if err := a.e.setParked(ctx, a.locked, first.UntilMs); err != nil {
		return out, err
	}
	if a.failedTry != nil {
		a.e.warn(fmt.Sprintf("role %q waits until %s: %s", a.task.role,
			first.Until().In(a.reader.Env.Now().Location()).Format(time.DateTime), plaintext.Line(fault.Of(first.why).Message)))
	}
	pos, err := a.reader.Position(ctx, a.locked.id, a.locked.head)
	if err != nil {
		return out, err
	}
	return pos.Output(), nil
}

// setParked records until when a thread is rate-limited.
func (e *Engine) setParked(ctx context.Context, h *lockedThread, until int64) error {
	return e.setFacts(ctx, h, heads.Facts{ParkedUntil: until, ParkedAt: h.head})
}

// withTries returns the step with the failed tries before it. Agents that use our packages record the tries
// themselves; for others, the step is rewritten.
func (a *attempt) withTries(ctx context.Context, got verify.Accepted) (verify.Accepted, error) {
	tries := a.dir.Tries(a.pos.Thread).InStep()
	switch {
	case len(tries) == 0 && len(got.Step.Tries) == 0, reflect.DeepEqual(tries, got.Step.Tries):
		return got, nil
	case len(got.Step.Tries) > 0:
		return got, verify.Rejected(got.Hash, protocol.CodeAgent, "step %s reports wrong attempts", got.Hash)
	}
	release, err := a.reader.LockStore(ctx)
	if err != nil {
		return got, err
	}
	defer release()
	got.Step.Tries = tries
	b := a.reader.Batch()
	if got.Hash, err = b.Add(ctx, got.Step); err == nil {
		err = b.Put(ctx)
	}
	if err != nil {
		return got, err
	}
	node, err := a.reader.Store.Get(ctx, got.Hash)
	if err != nil {
		return got, err
	}
	got.Nodes[len(got.Nodes)-1], got.Durable = node, false
	return got, nil
}

// cutShort records an interrupted run as a try. It may have cost something, but its cost is unknown unless it
// left a failure that reports it. Agents that call a model themselves continue the run and count its cost.
func (a *attempt) cutShort(last rundir.Record, left protocol.Result) {
	if last.Pid == 0 || len(last.Command) == 0 || last.Agent == protocol.CommandAgent ||
		config.OwnsModels(last.Command[0]) {
		return
	}
	tries := a.dir.Tries(a.pos.Thread)
	if n := len(tries); n > 0 && tries[n-1].AtMs >= last.StartedAt {
		return // already recorded
	}
	why, usage, kind := "it was interrupted", &protocol.Usage{Turns: 1}, protocol.FailedCrash
	if left.Usage != nil && left.Usage.Plausible() == nil {
		usage = left.Usage
	}
	if left.Error != "" {
		why, kind = fmt.Sprintf("%.500s", strings.ToValidUTF8(a.reader.Secrets().Hide(left.Error), "")), left.Kind
	}
	a.keepTry(last.Agent, why, usage, kind)
}
