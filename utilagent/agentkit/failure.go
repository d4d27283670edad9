package agentkit

import (
	"errors"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Failure is an error of a run that another try, or another agent, may not meet.
type Failure struct {
	Kind protocol.FailureKind
	// RetryAt is when the provider says that there is more; zero: it does not say.
	RetryAt time.Time
	// Repeated is how often the request that failed was repeated.
	Repeated int
	Err      error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// classed adds to the result of a failed step what sort of failure it is.
func classed(r protocol.Result, err error) protocol.Result {
	var f *Failure
	if !errors.As(err, &f) {
		if protocol.OfMachine(err) {
			r.Kind = protocol.FailedMachine
		}
		return r
	}
	return f.in(r)
}

// in adds a failure, nil for none, to a result.
func (f *Failure) in(r protocol.Result) protocol.Result {
	if f == nil {
		return r
	}
	r.Kind, r.Repeated = f.Kind, f.Repeated
	if !f.RetryAt.IsZero() {
		r.RetryAtMs = f.RetryAt.UnixMilli()
	}
	return r
}

// yields reports whether the engine deals with the limits of this agent's provider.
func yields(c protocol.Config, alias string) bool {
	on := c.Agents[alias].OnRateLimit
	return on == protocol.LimitWait || on == protocol.LimitFallback
}
