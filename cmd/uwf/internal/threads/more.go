package threads

import (
	"context"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// doAsking is doTrusting, and goes on once the person at the terminal has said how
// much more a run may cost that has stopped at its budget.
func (a Commands) doAsking(ctx context.Context, e *engine.Engine, id string, w engine.Work) ([]protocol.StepOutput, error) {
	results, err := a.doTrusting(ctx, e, id, w)
	for w.Steps == engine.UntilEnd && terminal.Is(a.Env.Stdin) && terminal.Is(a.Env.Stderr) {
		why := budgetReached(results, err)
		if why == "" {
			break
		}
		more, asked := a.askMore(ctx, e, id, why)
		if asked != nil || more == (engine.More{}) {
			break // what it has stopped at is said as ever
		}
		lines, failed := e.Grant(ctx, id, protocol.Limits{}, more)
		if failed != nil {
			return results, failed
		}
		for _, line := range lines {
			a.Say("thread %s: %s", id, line)
		}
		at, failed := e.Show(ctx, id)
		if failed != nil {
			return results, failed
		}
		w.Do, w.Prompt, w.Answer, w.Cwd = engine.DoStep, "", nil, ""
		if at.Status == protocol.StatusSuspended {
			w.Do = engine.DoResume
		}
		var made []protocol.StepOutput
		made, err = a.doTrusting(ctx, e, id, w)
		results = append(results, made...)
	}
	return results, err
}

// budgetReached is what of its budget a run has used up, "" if it has not.
func budgetReached(results []protocol.StepOutput, err error) string {
	switch {
	case err != nil && app.Classify(err).Code == protocol.CodeLimit:
		return err.Error()
	case err != nil || len(results) == 0:
		return ""
	}
	if at := results[len(results)-1]; at.Error != nil && at.Error.Code == protocol.CodeLimit && at.Status == protocol.StatusSuspended {
		return at.Error.Message
	}
	return ""
}

// askMore asks how much more a run may cost; nothing is a no.
func (a Commands) askMore(ctx context.Context, e *engine.Engine, id, why string) (engine.More, error) {
	l, spent, err := e.Spending(ctx, id)
	if err != nil {
		return engine.More{}, err
	}
	term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, terminal.Yellow), plaintext.Indent("? thread "+id+": "+why))
	question, read := amountOf(l, spent)
	for {
		text, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, question+" [y/N] ")
		if err != nil {
			return engine.More{}, err
		}
		switch strings.ToLower(text) {
		case "", "n", "no":
			return engine.More{}, nil
		case "y", "yes":
			return engine.More{Again: true}, nil
		}
		more, ok := read(text)
		if ok {
			return more, nil
		}
		a.Say("  an amount, y for as much again, or n")
	}
}

// amountOf is the question for more of the limit that is used up most, and how an
// amount of it is written. A budget of the one step has no amount.
func amountOf(l protocol.Limits, spent moderator.Spent) (question string, read func(string) (engine.More, bool)) {
	question, read = "Go on, with as much again?", func(string) (engine.More, bool) { return engine.More{}, false }
	most := 0.0
	for _, kind := range []struct {
		limit, spent float64
		question     string
		read         func(string) (engine.More, bool)
	}{
		{l.MaxCostUSD, spent.CostUSD, "How much more may it cost? (y: as much again; or dollars, such as 2.50)", func(text string) (engine.More, bool) {
			usd, ok := amount(text)
			return engine.More{CostUSD: usd}, ok
		}},
		{float64(l.MaxTokens), float64(spent.Tokens), "How many more tokens may it use? (y: as many again; or a number, such as 200000)", func(text string) (engine.More, bool) {
			n := term.NearNumber(text)
			return engine.More{Tokens: int64(n)}, n > 0
		}},
		{float64(l.MaxTimeMs), float64(spent.TimeMs), "How much longer may it take? (y: as long again; or a time, such as 30m)", func(text string) (engine.More, bool) {
			d, err := time.ParseDuration(text)
			return engine.More{Time: d}, err == nil && d > 0
		}},
	} {
		if kind.limit > 0 && (most == 0 || kind.spent/kind.limit > most) {
			question, read, most = kind.question, kind.read, kind.spent/kind.limit
		}
	}
	return question, read
}
