// Package llm is a client for endpoints that speak OpenAI's chat completions.
// It survives what real ones do: replies in every known shape, streams that are
// cut or stall, errors in six formats, rate limits.
//
// Invariants:
//   - the key goes to the endpoint's own scheme and host and nowhere else, and
//     appears in no error;
//   - a reply is whole or an error: nothing of a cut stream is returned;
//   - every tool call of a reply has an id that is unique in the conversation.
package llm

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/util/config"
)

// Options of a client. The zero value works.
type Options struct {
	// Transport carries the requests; nil: the default one, with the proxies of
	// the environment.
	Transport http.RoundTripper
	// Sleep waits between tries; nil: the real clock. It returns ctx's cause
	// when ctx ends first.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter returns a number in [0,1) that spreads the waits of many clients;
	// nil: a random one.
	Jitter func() float64
	// FirstByte bounds the wait for the head of a reply, Idle the silence
	// within one; 0: what the endpoint's config says, else 5 minutes and 2 minutes,
	// and 15 minutes at least without streaming: nothing comes before the model is
	// done then.
	FirstByte time.Duration
	Idle      time.Duration
	// Whole bounds a reply from beginning to end, so that one which never ends
	// but is never silent either cannot hold an agent for ever; 0: an hour.
	Whole time.Duration
	// Once: a failure that would have to be waited for is final. For a person who
	// wants to know whether a model answers.
	Once bool
	// Repeats bounds how often a question is repeated; nil: as the kind of failure allows.
	Repeats *int
	// Notify is told of every wait, for a person who watches; nil: silent.
	Notify func(text string)
}

// Client talks to one model of one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint config.Endpoint
	options  Options
	http     *http.Client

	cache  atomic.Pointer[written]         // of the last request
	ending atomic.Pointer[<-chan struct{}] // closed when the last reply has been read to its very end

	mu     sync.Mutex
	quirks quirks // learnt from the endpoint's errors, kept for the client's life
}

// New returns a client.
func New(e config.Endpoint, o Options) *Client {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	o.FirstByte = cmp.Or(o.FirstByte, e.IdleTimeout, 5*time.Minute)
	o.Idle = cmp.Or(o.Idle, e.IdleTimeout, 2*time.Minute)
	o.Whole = max(cmp.Or(o.Whole, time.Hour), e.IdleTimeout)
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	c := &Client{endpoint: e, options: o, quirks: quirks{noStream: !e.Stream, noToolMarks: !e.CacheControl, noMarks: !e.CacheControl}}
	c.http = &http.Client{Transport: o.Transport, CheckRedirect: sameHost}
	return c
}

// Source names the endpoint and model; see [Message.Source]. It holds no
// password, since it is stored.
func (c *Client) Source() string { return c.safeURL() + " " + c.endpoint.Model }

// URL is where the client asks, without a password, a query or a key.
func (c *Client) URL() string { return c.safeURL() }

// Complete asks the model, again and again where that may help. With an error the
// response has only what the tries cost. Errors are [*Error], or the cause of ctx's
// end.
func (c *Client) Complete(ctx context.Context, req Request) (Response, error) {
	var tries tries
	var failed []Failure
	whole := false // streaming was given up for this question
	for {
		resp, err := c.once(ctx, req)
		empty := saysNothing(resp, err)
		if empty && c.setStreaming(false) {
			whole = true
			failed = append(failed, Failure{Reason: "an empty stream; asked for a whole reply instead", Usage: resp.Usage})
			continue // some servers drop what they cannot stream
		}
		if empty && whole {
			c.setStreaming(true) // that was not why
		}
		resp.Failures = failed
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return resp, context.Cause(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return resp, err
		}
		if c.learn(e) {
			failed = append(failed, Failure{Reason: e.short() + "; asked in another way", Usage: resp.Usage})
			continue
		}
		wait, again := tries.next(e, c.options.Jitter)
		if most := c.options.Repeats; !again || c.options.Once || most != nil && tries.total > *most {
			return resp, c.describe(e, tries.total)
		}
		failed = append(failed, Failure{Reason: e.short(), Wait: wait, Usage: resp.Usage})
		c.options.Notify(e.waiting(c.endpoint.Model, tries.total+1, wait))
		if err := c.options.Sleep(ctx, wait); err != nil {
			return Response{Failures: failed}, err
		}
	}
}

// saysNothing reports a reply that is whole but empty.
func saysNothing(resp Response, err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.empty
	}
	return err == nil && resp.Empty() && resp.Finish == FinishStop
}

// sleep waits on the real clock.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
