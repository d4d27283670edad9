package llm

import (
	"net/http"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/resettime"
)

// Endpoints name failures in codes and in prose; these are the words by which
// the prose is known.
var (
	tooLong      = lazyregexp.New(`(?i)context_length_exceeded|maximum context length|prompt is too long|too many (input )?tokens|exceeds? the (available )?context|context window|input length`)
	filtered     = lazyregexp.New(`(?i)content_filter|content management policy|responsibleaipolicy`)
	cannotTool   = lazyregexp.New(`(?i)(does not|doesn't) support (tools|tool|function)|enable-auto-tool-choice|tool-call-parser|no endpoints found that support tool`)
	messageOrder = lazyregexp.New(`(?i)unexpected role|roles must alternate|invalid_request_message_order`)
	noMoney      = lazyregexp.New(`(?i)insufficient_quota|billing|insufficient (credits|balance|funds)`)
	badKey       = lazyregexp.New(`(?i)invalid_api_key|authentication_error|unauthenticated|api key not valid|incorrect api key`)
	overloaded   = lazyregexp.New(`(?i)overloaded`)
	unavailable  = lazyregexp.New(`(?i)server_error|unavailable`)
)

// statusOverloaded is Anthropic's status of an endpoint that takes no more requests for now.
const statusOverloaded = 529

// classify says what kind of failure an HTTP status with a refusal is.
func classify(status int, r refusal) Kind {
	words := r.code + " " + r.message
	switch {
	case strings.Contains(r.code, "tool_use_failed"):
		return KindToolUse
	case status == http.StatusPaymentRequired, noMoney().MatchString(words) && status < 500:
		return KindQuota
	case status == http.StatusTooManyRequests, status == statusOverloaded, strings.Contains(r.code, "rate_limit"), overloaded().MatchString(words):
		return KindRateLimit
	case status == http.StatusUnauthorized, status == http.StatusForbidden, badKey().MatchString(words):
		return KindAuth
	case status >= 500, passing(status):
		return KindServer
	case tooLong().MatchString(words), status == http.StatusRequestEntityTooLarge:
		return KindContext
	case filtered().MatchString(words):
		return KindContentFilter
	case cannotTool().MatchString(words):
		return KindNoTools
	case messageOrder().MatchString(words):
		return KindMessageOrder
	case status == http.StatusNotFound:
		return KindNotFound
	case status < 300 || unavailable().MatchString(words): // an error inside a reply that had begun
		return KindServer
	case isQuirk(r.message):
		return KindCompat
	}
	return KindBadRequest
}

// passing are the client errors that may pass on their own.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return true
	}
	return false
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
