// Package errorkind classifies failures reported by a model endpoint, or by a program that uses one, by HTTP
// status, by text, or by both. Everything that uses a model shares this table, so that the same failure
// causes the same wait everywhere.
package errorkind

import "regexp"

// Kind classifies a failed call.
type Kind string

// Kinds of failures.
const (
	Auth            Kind = "auth"       // the key or login is missing, wrong or not permitted
	Quota           Kind = "quota"      // the account has no credit left
	RateLimit       Kind = "rate_limit" // too many requests, or an overloaded endpoint
	Server          Kind = "server"     // a possibly transient failure of the provider or the network
	Context         Kind = "context"    // the conversation exceeds the model's context window
	BadRequest      Kind = "bad_request"
	SessionNotFound Kind = "session_not_found"
	SessionInUse    Kind = "session_in_use"
	UntrustedDir    Kind = "untrusted_dir"
	Denied          Kind = "permission"
	BadUsage        Kind = "usage" // the program does not know our arguments
	Unknown         Kind = "unknown"
)

// OfStatus returns the kind for an HTTP status, or [Unknown] if it is not an error. (Importing net/http would
// slow every start of an adapter by a millisecond.)
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

// Of returns the kind of an error with a message and an HTTP status (0 if none). The message distinguishes an
// overlong conversation, an account without credit, a wrong key and an overloaded endpoint from other errors
// with the same status.
func Of(status int, message string) Kind {
	kind, better := OfStatus(status), OfText(message)
	switch {
	case kind == Unknown, better == Context, better == Quota && status < 500,
		better == RateLimit && kind == Server, better == Auth && kind == BadRequest:
		return better
	}
	return kind
}

// signs match error texts of programs and endpoints, most specific first. They are compiled on first use,
// because failures are rare.
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

// OfText guesses the kind of error from its text. Use it when there is no status or code.
func OfText(text string) Kind {
	for _, sign := range signs {
		if regexp.MustCompile(sign.words).MatchString(text) {
			return sign.kind
		}
	}
	return Unknown
}
