package builtin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
)

// pause says why a run that is not finished should wait for a person, "" if it
// should not. Its conversation is kept, so that resuming the thread goes on.
func (w *work) pause(answer react.Answer, err error) string {
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.KindRateLimit && e.Wait > llm.LongWait {
		return fmt.Sprintf("%v. Resume the thread after that; the agent goes on where it was.", err)
	}
	used := w.usedUp(answer)
	if err != nil || used == "" {
		return ""
	}
	again := "Resume the thread to give it as much again."
	if w.ofRun(answer) {
		again = "That was all the run had left: uwf thread resume " + w.req.Thread + " --raise-limit grants more."
	}
	reason := fmt.Sprintf("%s has used its %s without a final answer. %s", protocol.AgentName(w.kind.name), used, again)
	if w.kind.resolves {
		reason = react.ErrMaxRounds.Error() + ": " + reason
	}
	if said := strings.TrimSpace(answer.Text); said != "" {
		reason += " Its last words: " + plaintext.Short(said, 500)
	}
	return reason
}

// failure says what sort of failure an error of the model is.
func (w *work) failure(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	f := &agentkit.Failure{Err: err, Repeated: e.Repeated()}
	switch e.Kind {
	case llm.KindRateLimit, llm.KindQuota:
		f.Kind = protocol.FailedRateLimit
	case llm.KindServer, llm.KindNetwork, llm.KindStreamCut, llm.KindIdle:
		f.Kind = protocol.FailedServer
	default:
		return err
	}
	if e.Wait > 0 {
		f.RetryAt = w.run.Env.Now().Add(e.Wait)
	}
	return f
}

// advise says what a person can do about an error that the loop cannot explain.
func (w *work) advise(err error) error {
	switch {
	case !errors.Is(err, react.ErrCostUnknown):
		return err
	case w.endpoint.Price != nil:
		return fmt.Errorf("%w: the endpoint reports no tokens, so that models.%s.price is of no use. "+
			"Set builtin.maxTokens instead of maxCostUsd: tokens that are not reported are estimated for it", err, w.endpoint.Alias)
	}
	return fmt.Errorf("%w: the endpoint reports none. Set models.%s.price in config.yaml, or take builtin.maxCostUsd out", err, w.endpoint.Alias)
}

// ofRun reports whether the budget that ended the work is the whole run's.
func (w *work) ofRun(answer react.Answer) bool {
	switch answer.Outcome {
	case react.MaxTokens:
		return w.shared.tokens
	case react.MaxCost:
		return w.shared.cost
	case react.MaxTime:
		return w.shared.time
	}
	return false
}

// usedUp names the budget that ended a run, "" if none did.
func (w *work) usedUp(answer react.Answer) string {
	switch answer.Outcome {
	case react.MaxTurns:
		if !w.kind.tools {
			return "" // one question is all there ever is: what came is the answer
		}
		return fmt.Sprintf("%d turns", w.turns)
	case react.MaxTokens:
		if answer.Tokens < w.budget.Tokens {
			return fmt.Sprintf("budget of %d tokens (%d of them, and one more reply may not fit)", w.budget.Tokens, answer.Tokens)
		}
		return fmt.Sprintf("%d tokens", w.budget.Tokens)
	case react.MaxCost:
		return fmt.Sprintf("$%g", w.budget.CostUSD)
	case react.MaxTime:
		return protocol.Span(w.budget.Time)
	}
	return ""
}
