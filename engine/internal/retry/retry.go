// Package retry reads the retry policy of agents from the config, classifies failures, and waits.
package retry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Policy defaults.
const (
	defaultAttempts = 3
	defaultBackoff  = 5 * time.Second
	defaultMaxPark  = 24 * time.Hour
)

// Of returns the policy of an agent. The config must be valid.
func Of(c protocol.Config, alias string) decide.Policy {
	a := c.Agents[alias]
	p := decide.Policy{
		Attempts: defaultAttempts, Backoff: defaultBackoff, Fallback: a.Fallback,
		AwaitReset: a.OnRateLimit == protocol.LimitWait, MaxRateLimitWait: span(a.MaxRateLimitWait, defaultMaxPark),
		On:         []protocol.FailureKind{protocol.FailedRateLimit, protocol.FailedServer},
		FallbackOn: kinds(a.FallbackOn, protocol.FailedRateLimit, protocol.FailedServer, protocol.FailedCrash),
	}
	if a.OnRateLimit != protocol.LimitFallback {
		p.FallbackOn = slices.DeleteFunc(p.FallbackOn, func(k protocol.FailureKind) bool {
			return k == protocol.FailedRateLimit
		})
	}
	if r := a.Retry; r != nil {
		if r.Attempts > 0 {
			p.Attempts = r.Attempts
		}
		p.On, p.Backoff = kinds(r.On, p.On...), span(r.Backoff, p.Backoff)
	}
	return p
}

// kinds converts configured names to kinds of failures; nil means that the setting was omitted.
func kinds(words []string, otherwise ...protocol.FailureKind) []protocol.FailureKind {
	if words == nil {
		return otherwise
	}
	all := make([]protocol.FailureKind, len(words))
	for i, kind := range words {
		all[i] = protocol.FailureKind(kind)
	}
	return all
}

func span(text string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return otherwise
}

// Brief returns why a try failed, on one line.
func Brief(ran agentproc.Outcome, err error) string {
	if ran.Result.Error != "" {
		return plaintext.Line(ran.Result.Error)
	}
	return plaintext.Line(err.Error())
}

// KindOf classifies an agent's failure.
func KindOf(ran agentproc.Outcome, err error) protocol.FailureKind {
	var (
		timeout *agentproc.TimeoutError
		exit    *agentproc.ExitError
		none    *agentproc.ResultError
	)
	switch {
	case fault.IsSignal(err):
		return ""
	case errors.As(err, &timeout):
		return protocol.FailedTimeout
	case ran.Result.Kind != "":
		return ran.Result.Kind
	case ran.Result.Error == "" && (errors.As(err, &exit) || errors.As(err, &none)):
		return protocol.FailedCrash
	}
	return ""
}

// Usage returns the known cost of a try that took the given number of milliseconds. plain means that it was a
// command.
func Usage(ran agentproc.Outcome, plain bool, took int64) *protocol.Usage {
	switch usage := ran.Result.Usage; {
	case plain:
		return &protocol.Usage{DurationMs: took}
	case usage == nil || usage.Plausible() != nil:
		return &protocol.Usage{Turns: 1, DurationMs: took} // unknown rather than zero
	default:
		return usage
	}
}

// Poll intervals for another process's work: short at first, then longer.
const (
	MinWait = 10 * time.Millisecond
	MaxWait = 250 * time.Millisecond
)

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
