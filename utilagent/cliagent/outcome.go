package cliagent

import (
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/resettime"
)

// OutcomeKind is how a call came out.
type OutcomeKind string

// How calls come out. Decoders give all but the last three, which the runner knows.
const (
	OK         OutcomeKind = "ok"
	Incomplete OutcomeKind = "incomplete" // it ended without an answer, or without saying that it is one
	MaxTurns   OutcomeKind = protocol.OutcomeMaxTurns
	Budget     OutcomeKind = protocol.OutcomeMaxCost
	Refusal    OutcomeKind = "refusal" // the model declines
	Failed     OutcomeKind = "error"

	Timeout     OutcomeKind = "timeout"
	Interrupted OutcomeKind = "interrupted" // by us, or by its user
	SessionLost OutcomeKind = "session_lost"
)

// resetsAt is when the limit at which a call failed is reset; the zero time: nobody knows.
func (o Outcome) resetsAt(now time.Time) time.Time {
	if !o.ResetsAt.IsZero() {
		return o.ResetsAt
	}
	return resettime.In(o.Message, now)
}

// ErrorKind is why a call failed.
type ErrorKind string

// Why calls fail.
const (
	Auth            ErrorKind = "auth"
	RateLimit       ErrorKind = "rate_limit"
	Quota           ErrorKind = "quota"
	Server          ErrorKind = "server" // of the model's provider, or the way to it
	BadRequest      ErrorKind = "bad_request"
	Context         ErrorKind = "context" // the conversation is too long
	SessionNotFound ErrorKind = "session_not_found"
	SessionInUse    ErrorKind = "session_in_use"
	UntrustedDir    ErrorKind = "untrusted_dir"
	Denied          ErrorKind = "permission"
	BadUsage        ErrorKind = "usage" // the program does not know our arguments
	NotInstalled    ErrorKind = "not_installed"
	TooOld          ErrorKind = "too_old"
	Crashed         ErrorKind = "crashed"
	Unknown         ErrorKind = "unknown"
)
