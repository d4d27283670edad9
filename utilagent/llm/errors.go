package llm

import (
	"fmt"
	"strings"
	"time"
)

// Kind is what sort of failure an [Error] is.
type Kind string

// The kinds.
const (
	KindAuth          Kind = "auth"            // the key is missing, wrong or not allowed
	KindQuota         Kind = "quota"           // the account has nothing left
	KindRateLimit     Kind = "rate_limit"      // too much at once
	KindServer        Kind = "server"          // the endpoint's fault; may pass
	KindNetwork       Kind = "network"         // the endpoint was not reached
	KindStreamCut     Kind = "stream_cut"      // a reply ended in the middle
	KindIdle          Kind = "idle"            // a reply stalled
	KindContext       Kind = "context"         // the conversation does not fit the model
	KindCompat        Kind = "compat"          // a field that this endpoint does not take
	KindMessageOrder  Kind = "message_order"   // a sequence of roles that it does not take
	KindToolUse       Kind = "tool_use_failed" // the model's call was malformed and the endpoint refused it
	KindNoTools       Kind = "no_tools"        // the model cannot call tools
	KindContentFilter Kind = "content_filter"  // refused by a filter
	KindNotFound      Kind = "not_found"       // no such model or path
	KindBadRequest    Kind = "bad_request"     // anything else that it refused
)

// Error is why a question got no reply. Its text says what to do, and never
// holds a key.
type Error struct {
	Kind    Kind
	Status  int    // HTTP; 0 if there was no answer
	Message string // the endpoint's own words, cut and masked
	// Wait is how long the endpoint asks to wait; 0 if it does not say.
	Wait time.Duration
	// Failed is the text of the call that KindToolUse is about.
	Failed string
	Err    error // the cause; may be nil

	model, provider string
	tries           int
	advice          string
	dial            bool // no connection was made
	final           bool // trying again is no use
	empty           bool // there was a reply, but nothing in it
}

// OfMachine implements what [protocol.OfMachine] asks for: the key is this machine's.
func (e *Error) OfMachine() bool { return e.Kind == KindAuth }

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.model != "" {
		fmt.Fprintf(&b, "model %q of provider %q: ", e.model, e.provider)
	}
	b.WriteString(e.short())
	if e.tries > 1 {
		fmt.Fprintf(&b, " (tried %d times)", e.tries)
	}
	if e.advice != "" {
		b.WriteString("; " + e.advice)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// short is what happened, without where and what to do.
func (e *Error) short() string {
	if e.Message == "" {
		return e.label()
	}
	return e.label() + ": " + e.Message
}

// label is the kind of failure.
func (e *Error) label() string {
	label := strings.ReplaceAll(string(e.Kind), "_", " ")
	if e.Status != 0 {
		label = fmt.Sprintf("HTTP %d (%s)", e.Status, label)
	}
	return label
}

// waiting says that another try is to come. What matters most is at the end, which is
// what a narrow live view shows.
func (e *Error) waiting(model string, try int, wait time.Duration) string {
	text := "model " + model + ": "
	if e.Message != "" {
		text += e.Message + ": "
	}
	return text + fmt.Sprintf("%s, try %d in %s", e.label(), try, wait.Round(100*time.Millisecond))
}

// Repeated is how often the question was repeated.
func (e *Error) Repeated() int { return max(0, e.tries-1) }

// describe completes an error that is about to be returned.
func (c *Client) describe(e *Error, tries int) *Error {
	e.model, e.provider, e.tries = c.endpoint.Model, c.endpoint.Provider, tries
	e.advice = c.advise(e)
	return e
}

// advise says what a person can do about an error.
func (c *Client) advise(e *Error) string {
	p := "providers." + c.endpoint.Provider
	switch e.Kind {
	case KindAuth:
		if c.endpoint.APIKey == "" {
			return fmt.Sprintf("no key is set: put one into %s.apiKey in config.yaml, or name its variable in %s.apiKeyEnv", p, p)
		}
		return fmt.Sprintf("the key came from %s: put one there that is valid for %s", c.endpoint.KeySource, c.safeURL())
	case KindQuota:
		return fmt.Sprintf("the account of the key from %s has no credit or quota left", c.endpoint.KeySource)
	case KindNotFound:
		return fmt.Sprintf("check models.%s.name and %s.baseUrl in config.yaml (asked %s)", c.endpoint.Alias, p, c.safeURL())
	case KindNetwork:
		return fmt.Sprintf("is the server running? %s.baseUrl leads to %s", p, c.safeURL())
	case KindContext:
		return "the conversation is longer than the model can read: choose a model with a larger window, or a smaller task"
	case KindNoTools:
		return "choose a model that can call tools, or start the server with tool calling switched on"
	case KindRateLimit:
		if e.Wait > LongWait {
			return fmt.Sprintf("the endpoint asks to wait %s", e.Wait.Round(time.Second))
		}
		return "try again later"
	}
	return ""
}

// mask hides the key in a text, and cuts a text that is too long to show.
func (c *Client) mask(s string) string {
	if k := c.endpoint.APIKey; len(k) > 3 {
		s = strings.ReplaceAll(s, k, "***")
	}
	const most = 1000
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, "�"))
}
