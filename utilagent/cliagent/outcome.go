package cliagent

import (
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/errorkind"
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

// Why calls fail besides what package failure knows.
const (
	NotInstalled errorkind.Kind = "not_installed"
	TooOld       errorkind.Kind = "too_old"
	Crashed      errorkind.Kind = "crashed"
)

// Fail is the outcome of a call that failed with a message. An empty message is
// replaced by the end of what the program wrote.
func Fail(kind errorkind.Kind, message string, e Exit) Outcome {
	if strings.TrimSpace(message) == "" {
		message = e.Said()
	}
	return Outcome{Kind: Failed, Error: kind, Message: message}
}

// Unfinished is the outcome of a program that ended without saying how it went: an error found
// in its messages, a crash, or just an early end.
func (e Exit) Unfinished() Outcome {
	said := e.Said()
	kind := errorkind.OfText(said)
	switch {
	case e.Stopped, e.Code == 0 && kind == errorkind.Unknown:
		return Outcome{Kind: Incomplete, Message: said}
	case kind != errorkind.Unknown:
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
