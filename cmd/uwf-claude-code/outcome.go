package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/figures"
)

// End implements [cliagent.Decoder]. The result line decides, not the exit
// status: that is 0 after an interrupt, and 1 or 0 at the limit of turns.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	if d.result == nil {
		return d.unfinished(e)
	}
	r := d.result
	out := r.outcome(e)
	if out.Kind != cliagent.OK {
		out.Message = cmp.Or(out.Message, r.Terminal, r.Subtype, "it does not say why")
	}
	d.limit(&out)
	out.Session, out.Mark = d.canGoOn(out), d.mark
	out.Usage = d.spent
	return out
}

// limit adds when the limit of a plan is reset: claude names the second before the line that fails.
func (d *decoder) limit(out *cliagent.Outcome) {
	if !d.resets.IsZero() && (out.Error == errorkind.RateLimit || out.Error == errorkind.Quota) {
		out.Error, out.ResetsAt = errorkind.Quota, d.resets
	}
}

// outcome reads the result line. "success" as subtype says nothing: an error of
// the model's endpoint has it, too.
func (l *line) outcome(e cliagent.Exit) cliagent.Outcome {
	message := l.errorText()
	switch {
	case l.Subtype == "error_max_turns", l.Terminal == "max_turns":
		return cliagent.Outcome{Kind: cliagent.MaxTurns, Message: message}
	case l.Subtype == "error_max_budget_usd":
		return cliagent.Outcome{Kind: cliagent.Budget, Message: message}
	case l.Subtype == "error_max_structured_output_retries":
		return cliagent.Outcome{Kind: cliagent.Incomplete, Message: message}
	case strings.HasPrefix(l.Terminal, "aborted"):
		return cliagent.Outcome{Kind: cliagent.Interrupted, Message: message}
	case l.APIStatus >= 400:
		return cliagent.Fail(errorkind.Of(l.APIStatus, message), message, e)
	case l.IsError || strings.HasPrefix(l.Subtype, "error"):
		return cliagent.Fail(errorkind.OfText(message+"\n"+e.Said()), message, e)
	case l.Stop == "refusal":
		return cliagent.Outcome{Kind: cliagent.Refusal, Message: l.Result}
	}
	return cliagent.Outcome{Kind: cliagent.OK, Final: l.Result, Value: l.Structured}
}

func (l *line) errorText() string {
	if l.Result != "" {
		return l.Result
	}
	var parts []string
	for _, e := range l.Errors {
		parts = append(parts, cliagent.TextOf(e))
	}
	return strings.Join(parts, "\n")
}

// unfinished is the outcome without a result line.
func (d *decoder) unfinished(e cliagent.Exit) cliagent.Outcome {
	out := e.Unfinished()
	out.Message = cmp.Or(out.Message, "claude ended without its last line")
	if strings.Contains(e.Stderr, "root/sudo privileges") {
		out.Error = errorkind.Denied
		out.Hint = "if this machine is there for that: uwf config set agents.<alias>.env.IS_SANDBOX 1; else uwf config set agents.<alias>.permission edits"
	}
	if d.retry != nil {
		out = d.retry.gaveUp(e)
	}
	d.limit(&out)
	out.Session = d.canGoOn(out)
	return out
}

// gaveUp is the outcome of a run that ended while it repeated a request.
func (l *line) gaveUp(e cliagent.Exit) cliagent.Outcome {
	if l.Status == 0 {
		return cliagent.Fail(errorkind.Server, cmp.Or(l.Error, "no answer")+": the model's endpoint could not be reached, again and again", e)
	}
	return cliagent.Fail(errorkind.OfStatus(l.Status), fmt.Sprintf("the model's endpoint answered with status %d, again and again", l.Status), e)
}

// canGoOn is the session, unless no model has spoken in it: the id that a failed
// start prints is not of a session.
func (d *decoder) canGoOn(out cliagent.Outcome) string {
	if d.spoke || out.Kind == cliagent.OK {
		return d.session
	}
	return ""
}

// usage is of this run alone.
type usage struct {
	Input      figures.Tokens `json:"input_tokens"`
	CacheWrite figures.Tokens `json:"cache_creation_input_tokens"`
	CacheRead  figures.Tokens `json:"cache_read_input_tokens"`
	Output     figures.Tokens `json:"output_tokens"`
}

func (u *usage) sum() figures.Tokens {
	if u == nil {
		return 0
	}
	return u.Input + u.CacheWrite + u.CacheRead + u.Output
}

// modelUsage is of one model.
type modelUsage struct {
	Input      figures.Tokens  `json:"inputTokens"`
	CacheWrite figures.Tokens  `json:"cacheCreationInputTokens"`
	CacheRead  figures.Tokens  `json:"cacheReadInputTokens"`
	Output     figures.Tokens  `json:"outputTokens"`
	Thinking   figures.Tokens  `json:"thinkingTokens"`
	Cost       figures.Dollars `json:"costUSD"`
}

// spend adds what a result line reports of the cost. There is one line for each time that
// claude has finished, and a background task can make it continue. Newer versions report what
// each line adds, side calls included: their modelUsage and total_cost_usd count the whole session,
// so a resumed call that is refused reports an empty addition beside the session's totals. Of older
// versions the newest line counts, with its usage by model where that is more: "usage" lacks what was
// asked again without streaming, and what was spent when a limit of cost ended the run.
func (d *decoder) spend(l *line) {
	switch {
	case len(l.SinceLast) > 0, l.SinceLast != nil && (d.spent.Usage != nil || l.Usage.sum() == 0):
		u := sum(l.SinceLast)
		if len(l.SinceLast) == 0 {
			u.CostUSD = new(float64)
		}
		if d.spent.Usage != nil {
			u = d.spent.Add(u)
		}
		d.spent.Usage = &u
	case l.Usage != nil:
		u := protocol.Usage{
			InputTokens: int64(l.Usage.Input), CacheReadTokens: int64(l.Usage.CacheRead),
			CacheWriteTokens: int64(l.Usage.CacheWrite), OutputTokens: int64(l.Usage.Output),
		}
		if l.SinceLast == nil {
			if all := sum(l.ByModel); tokens(all) > tokens(u) {
				u = all
			}
			u.CostUSD = l.Cost.USD()
		}
		d.spent.Usage = &u
	}
}

func tokens(u protocol.Usage) int64 {
	return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens + u.OutputTokens
}

// sum is what was spent on all models. If what one has cost is unknown, all is.
func sum(models map[string]modelUsage) (u protocol.Usage) {
	cost, priced := 0.0, len(models) > 0
	for _, name := range slices.Sorted(maps.Keys(models)) { // in one order: sums of fractions differ
		m := models[name]
		u.InputTokens += int64(m.Input)
		u.CacheReadTokens += int64(m.CacheRead)
		u.CacheWriteTokens += int64(m.CacheWrite)
		u.OutputTokens += int64(m.Output)
		u.ReasoningTokens += int64(m.Thinking)
		if usd := m.Cost.USD(); usd != nil {
			cost += *usd
		} else {
			priced = false
		}
	}
	if cost = protocol.RoundUSD(cost); priced {
		u.CostUSD = &cost
	}
	return u
}
