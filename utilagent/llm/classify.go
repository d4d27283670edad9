package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Endpoints name failures in codes and in prose; these are the words by which
// the prose is known.
var (
	tooLong      = lazily(`(?i)context_length_exceeded|maximum context length|prompt is too long|too many (input )?tokens|exceeds? the (available )?context|context window|input length`)
	filtered     = lazily(`(?i)content_filter|content management policy|responsibleaipolicy`)
	cannotTool   = lazily(`(?i)(does not|doesn't) support (tools|tool|function)|enable-auto-tool-choice|tool-call-parser|no endpoints found that support tool`)
	messageOrder = lazily(`(?i)unexpected role|roles must alternate|invalid_request_message_order`)
	noMoney      = lazily(`(?i)insufficient_quota|billing|insufficient (credits|balance|funds)`)
	badKey       = lazily(`(?i)invalid_api_key|authentication_error|unauthenticated|api key not valid|incorrect api key`)
	overloaded   = lazily(`(?i)overloaded|server_error|unavailable`)
)

// classify says what kind of failure an HTTP status with a refusal is.
func classify(status int, r refusal) Kind {
	words := r.code + " " + r.message
	switch {
	case strings.Contains(r.code, "tool_use_failed"):
		return KindToolUse
	case status == http.StatusPaymentRequired, noMoney().MatchString(words) && status < 500:
		return KindQuota
	case status == http.StatusTooManyRequests, strings.Contains(r.code, "rate_limit"):
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
	case status < 300 || overloaded().MatchString(words): // an error inside a reply that had begun
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

var tryAgainIn = lazily(`(?i)try again in ((?:[0-9.]+(?:ms|[hms]))+)`)

// askedWait is how long an endpoint asks to wait, 0 if it does not say. Points
// in time are taken relative to the answer's own Date, so that a wrong clock
// here does no harm.
func askedWait(h http.Header, r refusal) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil {
			return seconds(s)
		}
		if at, err := http.ParseTime(v); err == nil {
			return since(h, at)
		}
	}
	for _, what := range []string{"Requests", "Tokens"} {
		if h.Get("X-Ratelimit-Remaining-"+what) == "0" {
			if d := span(h.Get("X-Ratelimit-Reset-" + what)); d > 0 {
				return d
			}
		}
	}
	if d := span(r.delay); d > 0 {
		return d
	}
	if ms, err := strconv.ParseInt(r.reset, 10, 64); err == nil {
		return since(h, time.UnixMilli(ms))
	}
	if m := tryAgainIn().FindStringSubmatch(r.message); m != nil {
		return span(m[1])
	}
	return 0
}

// span reads "1.2s", "6m0s" or "30" (seconds).
func span(s string) time.Duration {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return seconds(f)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0
	}
	return max(d, 0)
}

// seconds is a wait of s seconds, within reason.
func seconds(s float64) time.Duration {
	const most = 30 * 24 * 3600
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, most) * float64(time.Second))
}

// since is the time from an answer's Date to at.
func since(h http.Header, at time.Time) time.Duration {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(at.Sub(date), 0)
}
