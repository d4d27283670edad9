package cliagent

import (
	"fmt"
	"regexp"
	"strings"
)

// StatusKind is the kind of error that an HTTP status of a model's endpoint means.
// (Package net/http would cost every start of an agent a millisecond.)
func StatusKind(status int) ErrorKind {
	switch {
	case status == 401, status == 403:
		return Auth
	case status == 402:
		return Quota
	case status == 429, status == 529:
		return RateLimit
	case status == 408, status >= 500:
		return Server
	case status >= 400:
		return BadRequest
	}
	return Unknown
}

// KindOf is the kind of an error with an HTTP status, 0 if it has none, and a message. The message tells
// a conversation that is too long, an account without money, and an overloaded endpoint from other errors of a
// status.
func KindOf(status int, message string) ErrorKind {
	kind, better := StatusKind(status), Classify(message)
	if kind == Unknown || better == Context || better == Quota || better == RateLimit && kind == Server {
		return better
	}
	return kind
}

// signs are what programs and endpoints write, most telling first. They are
// compiled when something has failed, which is rare, not at every start.
var signs = []struct {
	kind  ErrorKind
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

// Classify guesses the kind of error from what a program wrote. Use it where the
// program does not say the kind.
func Classify(text string) ErrorKind {
	for _, sign := range signs {
		if regexp.MustCompile(sign.words).MatchString(text) {
			return sign.kind
		}
	}
	return Unknown
}

// Fail is the outcome of a call that failed with a message. An empty message is
// replaced by the end of what the program wrote.
func Fail(kind ErrorKind, message string, e Exit) Outcome {
	if strings.TrimSpace(message) == "" {
		message = e.Said()
	}
	return Outcome{Kind: Failed, Error: kind, Message: message}
}

// Unfinished is the outcome of a program that ended without saying how it went: an error found
// in its messages, a crash, or just an early end.
func (e Exit) Unfinished() Outcome {
	said := e.Said()
	kind := Classify(said)
	switch {
	case e.Stopped, e.Code == 0 && kind == Unknown:
		return Outcome{Kind: Incomplete, Message: said}
	case kind != Unknown:
		return Fail(kind, said, e)
	case e.Signal != "":
		return Fail(Crashed, strings.TrimSpace("it was ended by a signal: "+e.Signal+"\n"+said), e)
	}
	return Fail(Crashed, strings.TrimSpace(fmt.Sprintf("exit status %d\n%s", e.Code, said)), e)
}

// Said is what the program wrote besides its lines, for a message; "" if nothing.
func (e Exit) Said() string {
	var said []string
	for _, text := range []string{e.Stderr, e.Noise} {
		if text = strings.TrimSpace(text); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}
