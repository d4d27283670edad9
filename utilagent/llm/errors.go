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

// Kinds of failures in addition to those of package errorkind.
const (
	Network       errorkind.Kind = "network"         // the endpoint was unreachable
	StreamCut     errorkind.Kind = "stream_cut"      // a reply ended early
	Idle          errorkind.Kind = "idle"            // a reply stalled
	Compat        errorkind.Kind = "compat"          // the endpoint does not support a field
	MessageOrder  errorkind.Kind = "message_order"   // the endpoint rejects the order of roles
	ToolUse       errorkind.Kind = "tool_use_failed" // the endpoint rejected the model's malformed call
	NoTools       errorkind.Kind = "no_tools"        // the model cannot call tools
	ContentFilter errorkind.Kind = "content_filter"  // blocked by a filter
	NotFound      errorkind.Kind = "not_found"       // no such model or path
)

// Error reports why a request got no reply. Its text says what to do, and never contains a key.
type Error struct {
	Kind    errorkind.Kind
	Status  int    // HTTP status; 0 if there was no response
	Message string // the endpoint's message, shortened and masked
	// Wait is the wait that the endpoint asks for; 0 if unspecified.
	Wait time.Duration
	// Failed is the text of the malformed call for ToolUse.
	Failed string
	Err    error // the cause; may be nil

	model, provider string
	tries           int
	advice          string
	dial            bool // no connection was made
	final           bool // retrying is pointless
	empty           bool // the reply was empty
}

// OfMachine reports whether the error concerns this machine, as a missing key does; see [protocol.OfMachine].
func (e *Error) OfMachine() bool { return e.Kind == errorkind.Auth }

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

func (e *Error) Unwrap() error { return e.Err }

// short describes the failure, without the endpoint and advice.
func (e *Error) short() string {
	if e.Message == "" {
		return e.label()
	}
	return e.label() + ": " + e.Message
}

// label returns the kind of failure as text.
func (e *Error) label() string {
	label := strings.ReplaceAll(string(e.Kind), "_", " ")
	if e.Status != 0 {
		label = fmt.Sprintf("HTTP %d (%s)", e.Status, label)
	}
	return label
}

// waiting announces a retry. The most important part is at the end, because a narrow live view shows only
// that.
func (e *Error) waiting(model string, try int, wait time.Duration) string {
	text := "model " + model + ": "
	if e.Message != "" {
		text += e.Message + ": "
	}
	return text + fmt.Sprintf("%s, attempt %d in %s", e.label(), try, wait.Round(100*time.Millisecond))
}

// Repeated returns the number of retries.
func (e *Error) Repeated() int { return max(0, e.tries-1) }

// describe completes an error before it is returned.
func (c *Client) describe(e *Error, tries int) *Error {
	e.model, e.provider, e.tries = c.endpoint.Model, c.endpoint.Provider, tries
	e.advice = c.advise(e)
	return e
}

// advise returns advice for the user.
func (c *Client) advise(e *Error) string {
	p := "providers." + c.endpoint.Provider
	switch e.Kind {
	case errorkind.Auth:
		if c.endpoint.APIKey == "" {
			return fmt.Sprintf("no key is set; set %s.apiKey in config.yaml, or its variable in %s.apiKeyEnv", p, p)
		}
		return fmt.Sprintf("the key from %s is not valid for %s", c.endpoint.KeySource, c.safeURL())
	case errorkind.Quota:
		return fmt.Sprintf("the account of the key from %s has no credit or quota left", c.endpoint.KeySource)
	case NotFound:
		return fmt.Sprintf("check models.%s.name and %s.baseUrl in config.yaml (asked %s)", c.endpoint.Alias, p, c.safeURL())
	case Network:
		return fmt.Sprintf("is the server running? %s.baseUrl is %s", p, c.safeURL())
	case errorkind.Context:
		return "the conversation exceeds the model's window; choose a model with a larger one, or a smaller task"
	case NoTools:
		return "choose a model that can call tools, or enable tool calling in the server"
	case errorkind.RateLimit:
		if e.Wait > LongWait {
			return fmt.Sprintf("the endpoint asks to wait %s", e.Wait.Round(time.Second))
		}
		return "try again later"
	}
	return ""
}

// mask hides the key in a text and shortens it.
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

// refusal is an endpoint's error, decoded from any format.
type refusal struct {
	message string
	code    string // "insufficient_quota", "429", "overloaded_error" …
	status  int    // status from the body, if present
	delay   string // Google's RetryInfo, such as "34s"
	reset   string // time at which a limit resets, in ms
	failed  string // the rejected call
}

// httpError returns the error for an HTTP status and body.
func (c *Client) httpError(status int, h http.Header, body []byte) *Error {
	r := readRefusal(body)
	if r.message == "" {
		r.message = http.StatusText(status)
	}
	if (status < 400 || status > 599) && r.status >= 400 && r.status <= 599 {
		status = r.status // an error sent with status 200
	}
	e := &Error{
		Kind: classify(status, r), Status: status, Message: c.mask(r.message),
		Failed: r.failed, Wait: askedWait(h, r),
		final: h.Get("X-Should-Retry") == "false",
	}
	return e
}

// readRefusal decodes an error body: JSON in one of the known formats, HTML, or plain text.
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

// refusalOf decodes {error:{…}}, {error:"…"}, [{error:{…}}], {object:"error",message,…},
// {type:"error",error:{…}} and {detail:…}.
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
	// In some formats the type is only a category ("invalid_request_error"), in others it is the only code.
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

// fromMetadata decodes what a router (OpenRouter) passes on: its own message only reports that the provider
// failed, the provider's contains the reason.
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

// str returns a JSON string or number as text, or "".
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

var htmlTitle = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title>`)

// textOfHTML returns the title of a proxy's error page in one line.
func textOfHTML(page string) string {
	page = page[:min(len(page), 64<<10)]
	if m := htmlTitle().FindStringSubmatch(page); m != nil {
		if title := strings.Join(strings.Fields(html.UnescapeString(m[1])), " "); title != "" {
			return "an HTML page instead of an answer: " + title
		}
	}
	return "an HTML page instead of an answer"
}

// Patterns for error codes and texts of the kinds that only this package knows.
var (
	filtered     = lazyregexp.New(`(?i)content_filter|content management policy|responsibleaipolicy`)
	cannotTool   = lazyregexp.New(`(?i)(does not|doesn't) support (tools|tool|function)|enable-auto-tool-choice|tool-call-parser|no endpoints found that support tool`)
	messageOrder = lazyregexp.New(`(?i)unexpected role|roles must alternate|invalid_request_message_order`)
	unavailable  = lazyregexp.New(`(?i)server_error|unavailable`)
)

// classify returns the kind of a failure.
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
	case status < 300 || unavailable().MatchString(words): // an error inside a reply that had already started
		return errorkind.Server
	case isQuirk(r.message):
		return Compat
	}
	return errorkind.BadRequest
}

// askedWait returns how long an endpoint asks clients to wait, or 0. Points in time are compared with the
// response's Date, so a wrong local clock does no harm. Without a Date, only durations are used.
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
