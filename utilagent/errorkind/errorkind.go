// Package errorkind says what kind of failure the model's endpoint, or a program that asks one,
// reports: by an HTTP status, by its words, or by both. Everything that asks a model uses this one
// table, so that the same refusal leads to the same wait, whoever has met it.
package errorkind

import "regexp"

// Kind is why a call failed.
type Kind string

// Why calls fail.
const (
	Auth            Kind = "auth"       // the key or login is missing, wrong or not allowed
	Quota           Kind = "quota"      // the account has nothing left
	RateLimit       Kind = "rate_limit" // too much at once, or an endpoint that takes no more for now
	Server          Kind = "server"     // of the model's provider, or the way to it; may pass
	Context         Kind = "context"    // the conversation does not fit the model
	BadRequest      Kind = "bad_request"
	SessionNotFound Kind = "session_not_found"
	SessionInUse    Kind = "session_in_use"
	UntrustedDir    Kind = "untrusted_dir"
	Denied          Kind = "permission"
	BadUsage        Kind = "usage" // the program does not know our arguments
	Unknown         Kind = "unknown"
)

// OfStatus returns the kind that an HTTP status means, [Unknown] for one that is no error.
// (Package net/http would cost every start of an adapter a millisecond.)
func OfStatus(status int) Kind {
	switch {
	case status == 401, status == 403:
		return Auth
	case status == 402:
		return Quota
	case status == 429, status == 529:
		return RateLimit
	case status == 408, status == 409, status == 425, status >= 500:
		return Server
	case status >= 400:
		return BadRequest
	}
	return Unknown
}

// Of returns the kind of an error with an HTTP status, 0 if it has none, and a message. The
// message tells a conversation that is too long, an account without money, a wrong key and an
// overloaded endpoint from other errors of a status.
func Of(status int, message string) Kind {
	kind, better := OfStatus(status), OfText(message)
	switch {
	case kind == Unknown, better == Context, better == Quota && status < 500,
		better == RateLimit && kind == Server, better == Auth && kind == BadRequest:
		return better
	}
	return kind
}

// signs are what programs and endpoints write, most telling first. They are
// compiled when something has failed, which is rare, not at every start.
var signs = []struct {
	kind  Kind
	words string
}{
	{SessionNotFound, `(?i)no (conversation|session|rollout|thread|chat) (was )?found|(session|conversation|chat|thread)( id)?( \S+)? (was )?not found|invalid session id|unknown session`},
	{SessionInUse, `(?i)session.*already (in use|exists)`},
	{UntrustedDir, `(?i)(not|isn't|un).{0,20}trusted|trust this (directory|folder|workspace)`},
	{Quota, `(?i)insufficient.?(quota|balance|credit|funds)|credit balance|quota (exceeded|exhausted)|exhausted your( \w+)? (quota|capacity)|` +
		`exceeded (your|the)[\w -]{0,24}(quota|allowance)|usage (limit|exceeded)|out of[\w -]{0,12} (usage|credits)|spending (cap|limit)|` +
		`(hit|reached) your[\w .-]{0,30} limit|\b(hour|daily|weekly|monthly|session) limit reached|billing|\b402\b`},
	{RateLimit, `(?i)rate.?limit|too many requests|\b429\b|overloaded|at capacity|no capacity|throttl|resource (has been )?exhausted|` +
		`RESOURCE_EXHAUSTED|\b529\b`},
	{Auth, `(?i)not logged in|log ?in\b.*(required|first|again)|please (run )?.?/?log ?in|sign in again|unauthori[sz]ed|authenticat(e\b|ion)|` +
		`(oauth|access|refresh) (token|session)[\w ]{0,16} (expired|refreshed|revoked)|organization has been disabled|` +
		`invalid.{0,12}(api.?key|token|credential)|(missing|no|set).{0,24}api.?key|invalid auth|\b401\b|\b403\b`},
	{Context, `(?i)context (window|length|limit)|prompt is too long|maximum context|too many tokens`},
	{BadUsage, `(?i)unknown (option|argument|flag|command)|unexpected argument|unrecognized (option|argument)|requires --`},
	{Denied, `(?i)permission denied|not permitted|rejected by (the )?user|auto-?reject`},
	{Server, `(?i)\b50[0234]\b|internal server error|bad gateway|service unavailable|ECONNREFUSED|ECONNRESET|ETIMEDOUT|connection (refused|reset|error)|unable to connect|network error|(request|connection|response) timed? ?out|stream (disconnected|error)|fetch failed`},
	{BadRequest, `(?i)bad request|invalid.?request|\b400\b|\b404\b|\b422\b|unknown model|model.{0,40}not (found|supported|exist)`},
}

// OfText guesses the kind of error from words. Use it where nothing says the kind.
func OfText(text string) Kind {
	for _, sign := range signs {
		if regexp.MustCompile(sign.words).MatchString(text) {
			return sign.kind
		}
	}
	return Unknown
}
