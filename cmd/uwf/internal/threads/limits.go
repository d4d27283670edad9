package threads

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// limitFlags bound what a whole run may cost.
func limitFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "max-cost", Usage: "start nothing new once the whole run has cost `DOLLARS`"},
		&ucli.StringFlag{Name: "max-tokens", Usage: "start nothing new once the whole run has read and written `N` tokens"},
		&ucli.StringFlag{Name: "max-time", Usage: "start nothing new once the steps of the run have taken this `TIME`, such as 2h"},
	}
}

// moreFlags grant a run more than its limits.
func moreFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "raise-limit", Usage: "grant as much again of the limit that was reached: cost, tokens, time, steps, or the day's for all threads"},
		&ucli.StringFlag{Name: "add-cost", Usage: "grant `DOLLARS` more"},
		&ucli.StringFlag{Name: "add-tokens", Usage: "grant `N` more tokens"},
		&ucli.StringFlag{Name: "add-time", Usage: "grant this much more `TIME`, such as 30m"},
	}
}

// limitsOf reads the flags of [limitFlags]; zero: not given.
func limitsOf(c *ucli.Context) (l protocol.Limits, err error) {
	if l.MaxCostUSD, err = dollarsOf(c, "max-cost"); err != nil {
		return l, err
	}
	if l.MaxTokens, err = tokensOf(c, "max-tokens"); err != nil {
		return l, err
	}
	d, err := term.SpanOf(c, "max-time")
	l.MaxTimeMs = d.Milliseconds()
	return l, err
}

// moreOf reads the flags of [moreFlags].
func moreOf(c *ucli.Context) (m engine.More, err error) {
	m.Again = c.Bool("raise-limit")
	if m.CostUSD, err = dollarsOf(c, "add-cost"); err != nil {
		return m, err
	}
	if m.Tokens, err = tokensOf(c, "add-tokens"); err != nil {
		return m, err
	}
	m.Time, err = term.SpanOf(c, "add-time")
	return m, err
}

// dollarsOf reads an amount of money; 0 if it was not given.
func dollarsOf(c *ucli.Context, flag string) (float64, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	text := strings.TrimSpace(c.String(flag))
	usd, ok := amount(text)
	if !ok {
		return 0, cmdline.UsageError(fmt.Sprintf("--%s must be a number of dollars above 0, got %q", flag, text), "--"+flag+" 5")
	}
	return usd, nil
}

// amount reads an amount of money.
func amount(text string) (float64, bool) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	return usd, err == nil && usd > 0 && usd <= protocol.MaxCostUSD
}

// tokensOf reads a number of tokens; 0 if it was not given.
func tokensOf(c *ucli.Context, flag string) (int64, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	n, err := term.NumberFlag(c, flag, 1, 200000)
	return int64(n), err
}

// checkBudget refuses a thread whose costs nobody would know.
func checkBudget(ctx context.Context, e *engine.Engine, s protocol.Start, l protocol.Limits, o engine.StepOptions) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, s.Workflow)
	if err != nil {
		return err
	}
	return e.CheckBudget(ctx, w, l, o)
}

// grant sets limits of a thread and grants more, as the flags say, and says what.
func (a Commands) grant(ctx context.Context, c *ucli.Context) error {
	l, err := limitsOf(c)
	if err != nil {
		return err
	}
	m, err := moreOf(c)
	if err != nil || l == (protocol.Limits{}) && m == (engine.More{}) {
		return err
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	lines, err := e.Grant(ctx, id, l, m)
	for _, line := range lines {
		a.Say("thread %s: %s", id, line)
	}
	return err
}
