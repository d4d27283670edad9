package llm

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/resettime"
)

// Kinds of failures besides those that package errorkind knows.
const (
	Network       errorkind.Kind = "network"         // the endpoint was not reached
	StreamCut     errorkind.Kind = "stream_cut"      // a reply ended in the middle
	Idle          errorkind.Kind = "idle"            // a reply stalled
	Compat        errorkind.Kind = "compat"          // a field that this endpoint does not take
	MessageOrder  errorkind.Kind = "message_order"   // a sequence of roles that it does not take
	ToolUse       errorkind.Kind = "tool_use_failed" // the model's call was malformed and the endpoint refused it
	NoTools       errorkind.Kind = "no_tools"        // the model cannot call tools
	ContentFilter errorkind.Kind = "content_filter"  // refused by a filter
	NotFound      errorkind.Kind = "not_found"       // no such model or path
)

// Error is why a question got no reply. Its text says what to do, and never
// holds a key.
type Error struct {
	Kind    errorkind.Kind
	Status  int    // HTTP; 0 if there was no answer
	Message string // the endpoint's own words, cut and masked
	// Wait is how long the endpoint asks to wait; 0 if it does not say.
	Wait time.Duration
	// Failed is the text of the call that ToolUse is about.
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
func (e *Error) OfMachine() bool { return e.Kind == errorkind.Auth }

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
	case errorkind.Auth:
		if c.endpoint.APIKey == "" {
			return fmt.Sprintf("no key is set: put one into %s.apiKey in config.yaml, or name its variable in %s.apiKeyEnv", p, p)
		}
		return fmt.Sprintf("the key came from %s: put one there that is valid for %s", c.endpoint.KeySource, c.safeURL())
	case errorkind.Quota:
		return fmt.Sprintf("the account of the key from %s has no credit or quota left", c.endpoint.KeySource)
	case NotFound:
		return fmt.Sprintf("check models.%s.name and %s.baseUrl in config.yaml (asked %s)", c.endpoint.Alias, p, c.safeURL())
	case Network:
		return fmt.Sprintf("is the server running? %s.baseUrl leads to %s", p, c.safeURL())
	case errorkind.Context:
		return "the conversation is longer than the model can read: choose a model with a larger window, or a smaller task"
	case NoTools:
		return "choose a model that can call tools, or start the server with tool calling switched on"
	case errorkind.RateLimit:
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

// refusal is an error as an endpoint words it, whatever the shape of the body.
type refusal struct {
	message string
	code    string // "insufficient_quota", "429", "overloaded_error" …
	status  int    // if the body names one
	delay   string // Google's RetryInfo, such as "34s"
	reset   string // a time in ms at which a limit is lifted
	failed  string // the call that was refused
}

// httpError explains an HTTP status with its body.
func (c *Client) httpError(status int, h http.Header, body []byte) *Error {
	r := readRefusal(body)
	if r.message == "" {
		r.message = http.StatusText(status)
	}
	if (status < 400 || status > 599) && r.status >= 400 && r.status <= 599 {
		status = r.status // a 200 that is none
	}
	e := &Error{
		Kind: classify(status, r), Status: status, Message: c.mask(r.message),
		Failed: r.failed, Wait: askedWait(h, r),
		final: h.Get("X-Should-Retry") == "false",
	}
	return e
}

// readRefusal reads an error body: JSON in one of the known shapes, HTML, or
// plain text.
func readRefusal(body []byte) refusal {
	text := strings.TrimSpace(string(body))
	var v any
	if json.Unmarshal(body, &v) != nil {
		if strings.HasPrefix(text, "<") {
			return refusal{message: textOfHTML(text)}
		}
		return refusal{message: text}
	}
	return refusalOf(v)
}

// refusalOf knows the shapes {error:{…}}, {error:"…"}, [{error:{…}}],
// {object:"error",message,…}, {type:"error",error:{…}} and {detail:…}.
func refusalOf(v any) refusal {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return refusalOf(v[0])
		}
	case string:
		return refusal{message: v}
	case map[string]any:
		if inner, ok := v["error"]; ok && inner != nil {
			if s, ok := inner.(string); ok {
				return refusal{message: s}
			}
			return refusalOf(inner)
		}
		return refusalFields(v)
	}
	return refusal{}
}

func refusalFields(m map[string]any) refusal {
	r := refusal{message: str(m["message"]), code: str(m["code"]), failed: str(m["failed_generation"])}
	if r.message == "" && m["detail"] != nil {
		r.message = jsonText(m["detail"])
	}
	r.status, _ = strconv.Atoi(r.code)
	// The type is only a name for a whole family ("invalid_request_error") in
	// some shapes and the only code in others.
	r.code = strings.TrimSpace(r.code + " " + str(m["type"]) + " " + str(m["status"]))
	if meta, ok := m["metadata"].(map[string]any); ok {
		r.fromMetadata(meta)
	}
	details, _ := m["details"].([]any)
	for _, d := range details {
		if d, ok := d.(map[string]any); ok && r.delay == "" {
			r.delay = str(d["retryDelay"])
		}
	}
	return r
}

// fromMetadata reads what a router (OpenRouter) passes on: its own message says
// only that the provider failed, the provider's says why.
func (r *refusal) fromMetadata(meta map[string]any) {
	if headers, ok := meta["headers"].(map[string]any); ok {
		r.reset = str(headers["X-RateLimit-Reset"])
	}
	raw := str(meta["raw"])
	if raw == "" {
		return
	}
	inner := readRefusal([]byte(raw))
	if inner.message != "" {
		raw = inner.message
	}
	if name := str(meta["provider_name"]); name != "" {
		raw = name + ": " + raw
	}
	r.message += ": " + raw
	r.code += " " + inner.code
}

// str is a JSON string or number as text, "" for anything else.
func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

var (
	htmlTitle  = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title>`)
	htmlHidden = lazyregexp.New(`(?is)<(script|style|head)[^>]*>.*?</(script|style|head)>`)
	htmlTag    = lazyregexp.New(`(?s)<[^>]*>`)
)

// textOfHTML is what a proxy's error page says, in a line.
func textOfHTML(page string) string {
	page = page[:min(len(page), 64<<10)]
	if m := htmlTitle().FindStringSubmatch(page); m != nil {
		if title := strings.Join(strings.Fields(html.UnescapeString(m[1])), " "); title != "" {
			return "an HTML page instead of an answer: " + title
		}
	}
	text := htmlTag().ReplaceAllString(htmlHidden().ReplaceAllString(page, " "), " ")
	text = strings.Join(strings.Fields(html.UnescapeString(text)), " ")
	if r := []rune(text); len(r) > 200 {
		text = string(r[:200]) + "…"
	}
	return strings.TrimSuffix("an HTML page instead of an answer: "+text, ": ")
}

// Endpoints name failures in codes and in prose; these are the words of kinds that only this
// package knows.
var (
	filtered     = lazyregexp.New(`(?i)content_filter|content management policy|responsibleaipolicy`)
	cannotTool   = lazyregexp.New(`(?i)(does not|doesn't) support (tools|tool|function)|enable-auto-tool-choice|tool-call-parser|no endpoints found that support tool`)
	messageOrder = lazyregexp.New(`(?i)unexpected role|roles must alternate|invalid_request_message_order`)
	unavailable  = lazyregexp.New(`(?i)server_error|unavailable`)
)

// classify says what kind of failure an HTTP status with a refusal is.
func classify(status int, r refusal) errorkind.Kind {
	words := r.code + " " + r.message
	kind := errorkind.Of(status, words)
	switch {
	case strings.Contains(r.code, "tool_use_failed"):
		return ToolUse
	case kind == errorkind.Quota, kind == errorkind.RateLimit, kind == errorkind.Auth, kind == errorkind.Context:
		return kind
	case status == http.StatusRequestEntityTooLarge:
		return errorkind.Context
	case status >= 400 && kind == errorkind.Server:
		return kind
	case filtered().MatchString(words):
		return ContentFilter
	case cannotTool().MatchString(words):
		return NoTools
	case messageOrder().MatchString(words):
		return MessageOrder
	case status == http.StatusNotFound:
		return NotFound
	case status < 300 || unavailable().MatchString(words): // an error inside a reply that had begun
		return errorkind.Server
	case isQuirk(r.message):
		return Compat
	}
	return errorkind.BadRequest
}

// askedWait is how long an endpoint asks to wait, 0 if it does not say. Points in time are taken
// relative to the answer's own Date, so that a wrong clock here does no harm. Without a Date only
// lengths of time count.
func askedWait(h http.Header, r refusal) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	now := date.Local()
	at := resettime.Header(h.Get, now)
	for _, text := range []string{"retry-delay: " + r.delay, "reset-at: " + r.reset, r.message} {
		if at.IsZero() && (err == nil || text != r.message) {
			at = resettime.In(text, now)
		}
	}
	return max(at.Sub(now), 0)
}
