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

// A visit is a turn of a role. It is tried until it yields a step: again by its agent if the
// failure may be temporary, later if the provider says when its limit resets, or by another
// agent. The step records the failed tries and their cost.

// visitKey is the same for all tries of a visit, and for no other one.
func (a *attempt) visitKey() string {
	of := []string{a.locked.id, string(a.pos.Thread.Head), a.task.role, string(a.task.promptHash)}
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(sum[:])[:26]
}

// play makes the visit: by the agent, again, or by another one.
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
	if first.Fallback, err = a.goOnWith(ctx, c, first.Fallback, o); err != nil {
		return out, err
	}
	defer func() { a.endWait(err) }()
	var failed error // of the last try; nil: there was none
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

// failure is what there is to know of a try that failed, or of an agent that was not started.
func (a *attempt) failure(failed error, p decide.Policy) decide.Failure {
	now := a.reader.Env.Now()
	f := decide.Failure{
		Held: a.pass == nil, Runs: a.runs, Reset: max(0, a.blocked.Until().Sub(now)), Stopped: a.dir.StopRequested(a.record),
		Soon: a.blocked.Start(now, p, time.Time{}) != limits.MustNotStart, NoDay: a.day.UsedUp() != limits.Limit{},
	}
	if _, f.NoBudget = moderator.OverBudget(a.pos.State, a.task.role); f.Held {
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

// conclude records that nothing is left to try.
func (a *attempt) conclude(then decide.Then) {
	if a.record.Exhausted = then.Kind == decide.ThenExhausted; a.record.Exhausted {
		_ = a.dir.Write(a.record) // else it has failed, and is tried again, too
	}
}

// blocked is why an agent does not play: a limit. The zero value: none.
type blocked struct {
	limits.Limit
	why error
}

// sooner is what can play first: the agent, or one of those before it.
func (a *attempt) sooner() blocked {
	if a.soonest.Sooner(a.blocked.Limit) == a.soonest.Limit {
		return a.soonest
	}
	return a.blocked
}

// enter asks for a pass under which the agent runs. Without one its account is limited, and
// a.blocked says until when.
func (a *attempt) enter(ctx context.Context, c protocol.Config, p decide.Policy, wake bool) error {
	account := a.e.Casting().Account(ctx, a.cmd, a.pos.Workflow.Name, a.task.role)
	terms := limits.Terms{Policy: p, Day: a.day, Places: c.Concurrency[account.Name]}
	if a.reader.Env.Get(protocol.EnvRunDir) != "" {
		terms.Places = 0 // an agent has started us, and its place is ours: we could wait for it for ever
	}
	if wake && a.e.driven != nil {
		terms.Since = a.e.driven.begun
	}
	report := sync.OnceFunc(func() {
		a.e.warn(fmt.Sprintf("role %q: agent %s waits: account %s is limited, or has no place free (concurrency.%s)",
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

// notStarted is why the agent does not play, because of its account, or of the day.
func (a *attempt) notStarted(l limits.Limit, account string) blocked {
	if l.Refusals == 0 {
		return blocked{l, fault.New(protocol.CodeLimit, "%s", l.Reason)}
	}
	until := l.Until().In(a.reader.Env.Now().Location()).Format(time.DateTime)
	return blocked{l, fault.New(protocol.CodeAgent, "agent %s was not started: its account %s is limited until %s: %s",
		a.cmd.Name, account, until, l.Reason)}
}

// today is the limit of the day, which the user's config sets.
func (e *Engine) today(ctx context.Context) (limits.Day, error) {
	c, err := e.Reader.Config(ctx)
	return e.accounts().Today(c.Limits), err
}

// spend counts what an agent has cost today; step is what it has made, "" if it has failed.
func (a *attempt) spend(ctx context.Context, step protocol.Hash, u *protocol.Usage) (err error) {
	if a.pos.Workflow.Roles[a.task.role].Player() != protocol.PlayedByAgent {
		return nil
	}
	if a.day, err = a.e.today(ctx); err != nil {
		return err
	}
	return a.day.Count(a.locked.id, step, u)
}

// accountOf returns whether all agents that can play a role wait for their accounts, and the limit
// that is reset first. It only reads.
func (e *Engine) accountOf(
	ctx context.Context, pos *status.Position, role string, o StepOptions,
) (decide.Account, limits.Limit) {
	if pos.Workflow.Roles[role].Player() == protocol.PlayedByAgent || o.Scenario != "" {
		if day, err := e.today(ctx); err == nil && day.UsedUp() != (limits.Limit{}) {
			return decide.Limited, day.UsedUp()
		}
		if l, held := e.Casting().Held(ctx, e.accounts(), o.Wish(), pos.Workflow.Name, role); held {
			return decide.Limited, l
		}
	}
	return decide.Free, limits.Limit{}
}

// quiet is how long an agent waits before a person is told.
const quiet = 3 * time.Second

// waits shows that the visit waits before it starts an agent, as a run that can be stopped, and
// returns why it must not go on.
func (a *attempt) waits(ctx context.Context) (err error) {
	if a.waiting == nil {
		a.record = a.newRecord()
		if a.waiting, err = a.prepare(ctx); err != nil {
			return err
		}
	}
	if a.dir.StopRequested(a.record) {
		return a.stopped(fault.New(protocol.CodeTerminated, "thread %s was stopped while %q waited", a.locked.id, a.task.role))
	}
	return nil
}

// endWait ends a run in which the visit waited and no agent followed; err is why, nil if the
// record says so already.
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
		_ = a.waiting.Unlock() // it ends with the process
		a.waiting = nil
	}
}

// leave notes what the provider has said to the agent.
func (a *attempt) leave(failed error) {
	defer a.pass.Leave()
	a.runs += a.repeated
	if a.reason = ""; a.failedTry != nil {
		a.reason = a.failedTry.Error
	}
	switch {
	case a.refused:
		limit := a.pass.Refused(limits.Refusal{RetryAt: a.retryAt, Reason: a.reason})
		a.blocked = blocked{limit, fault.New(protocol.CodeAgent, "agent %s was refused by its provider: %s", a.cmd.Name,
			a.reason)}
	case failed == nil:
		a.pass.Served()
	}
}

// pause waits before the agent runs again.
func (a *attempt) pause(ctx context.Context, p decide.Policy, wait time.Duration) error {
	a.e.warn(fmt.Sprintf("role %q: %s: try %d of %d in %s", a.task.role, plaintext.Line(a.failedTry.Error), a.runs+1,
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

// goOnWith picks the agent that an interrupted visit had reached, and returns those that are left
// to take over. Once all were given up, the first one starts again.
func (a *attempt) goOnWith(ctx context.Context, c protocol.Config, all []string, o StepOptions) ([]string, error) {
	gone := a.dir.Tries(a.pos.Thread).GaveUp(a.visitKey())
	left := slices.DeleteFunc(slices.Clone(all), func(alias string) bool { return slices.Contains(gone, alias) })
	if len(left) == 0 || !slices.Contains(gone, a.cmd.Name) {
		return left, nil
	}
	return left[1:], a.replace(ctx, c, left[0], o)
}

// fallBack puts the next agent in the agent's place. What limits say is read again in a later step.
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
	a.e.warn(fmt.Sprintf("role %q: agent %s gives up (%s); %s goes on", a.task.role, was, plaintext.Line(a.reason),
		a.cmd.Name))
	return nil
}

// replace puts a fallback in the agent's place.
func (a *attempt) replace(ctx context.Context, c protocol.Config, next string, o StepOptions) error {
	cmd, err := a.e.Casting().Fallback(c, next, o.Wish())
	if err != nil {
		return err
	}
	a.cmd = cmd
	_, err = a.e.Casting().Unpriced(ctx, a.pos.State.Limits, cmd, a.pos.Workflow.Name, a.task.role)
	return err
}

// tried keeps a failed try and its cost, as far as that is known.
func (a *attempt) tried(ran agentproc.Outcome, err error) {
	var missing *agentproc.NotFoundError
	if errors.As(err, &missing) {
		return // nothing had begun
	}
	usage := retry.Usage(ran, a.cmd.Plain != nil, max(0, a.e.nowMs()-a.record.StartedAt))
	why := fmt.Sprintf("%.500s", strings.ToValidUTF8(a.reader.Secrets().Hide(retry.Brief(ran, err)), ""))
	a.failedTry = a.keepTry(a.cmd.Name, why, usage, retry.KindOf(ran, err))
	if budget.Bounded(a.pos.State.Limits) {
		a.pos.State.Spent = budget.WithTry(a.pos.State.Spent, *a.failedTry)
	}
}

// keepTry adds a failed try to those that the next step will hold.
func (a *attempt) keepTry(agent, why string, usage *protocol.Usage, kind protocol.FailureKind) *runfiles.Try {
	try := runfiles.Try{
		Try:   protocol.Try{Agent: agent, Error: why, Usage: usage, AtMs: a.e.nowMs()},
		Visit: a.visitKey(), Alias: agent, Kind: kind,
	}
	if err := a.dir.KeepTries(a.dir.Tries(a.pos.Thread).Add(try)); err != nil {
		a.e.warn("what a failed try has cost is not kept: " + err.Error())
	}
	if err := a.spend(context.Background(), "", usage); err != nil { // whatever has ended the try
		a.e.warn("what a failed try has cost does not count for limits.perDay: " + err.Error())
	}
	return &try
}

// park sets the visit aside until a limit is reset. No process waits meanwhile.
func (a *attempt) park(ctx context.Context, first blocked) (out protocol.StepOutput, err error) {
	if a.record.StartedAt == 0 { // the record says why, and what a person has said
		if err := a.waits(ctx); err != nil {
			return out, err
		}
	}
	if day, err := a.e.today(ctx); err == nil && first.Refusals == 0 {
		_ = day.Note() // else it is noted the next time
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

// setParked notes until when a thread is parked.
func (e *Engine) setParked(ctx context.Context, h *lockedThread, until int64) error {
	return e.setFacts(ctx, h, heads.Facts{ParkedUntil: until, ParkedAt: h.head})
}

// withTries ensures that a step records the failed tries before it. An agent made with our
// packages has recorded them itself; for others the step is rewritten.
func (a *attempt) withTries(ctx context.Context, got verify.Accepted) (verify.Accepted, error) {
	tries := a.dir.Tries(a.pos.Thread).InStep()
	switch {
	case len(tries) == 0 && len(got.Step.Tries) == 0, reflect.DeepEqual(tries, got.Step.Tries):
		return got, nil
	case len(got.Step.Tries) > 0:
		return got, verify.Rejected(got.Hash, protocol.CodeAgent,
			"step %s reports tries that did not happen, or not all of them", got.Hash)
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

// cutShort keeps an interrupted run as a try: it may have cost something, and unless it has left a
// failure that says so, nobody knows what. Agents that call a model themselves continue where it
// stopped, and count its cost.
func (a *attempt) cutShort(last rundir.Record, left protocol.Result) {
	if last.Pid == 0 || len(last.Command) == 0 || last.Agent == protocol.CommandAgent ||
		config.OwnsModels(last.Command[0]) {
		return
	}
	tries := a.dir.Tries(a.pos.Thread)
	if n := len(tries); n > 0 && tries[n-1].AtMs >= last.StartedAt {
		return // it is kept already
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
