package main

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// quiet reads "hermes chat --quiet": stdout is the answer. Older versions print a
// banner before it, and the session's id before or after it; newer ones print the
// id on stderr.
type quiet struct {
	begun  bool   // the answer has begun
	blanks int    // empty lines that are part of it if something follows
	held   string // a line that is the id, unless something follows; with the line ends before it
	answer []byte
	done   bool // the id has come, and the answer
}

// ownID is the form of a session's id as Hermes makes them: a line that has one
// is never part of an answer.
const ownID = "20060102_150405_"

// plain reads a line. Nothing is told of it: the answer is the outcome's, and what
// led to it is in Hermes's own store.
func (d *decoder) plain(data []byte) ([]cliagent.Event, bool) {
	q := &d.quiet
	line := string(bytes.TrimRight(data, "\r\n"))
	trimmed := strings.TrimSpace(line)
	switch m := idLine.FindStringSubmatch(trimmed); {
	case trimmed == "":
		if q.begun {
			q.blanks++
		}
	case m != nil && (looksOwn(m[1]) || !q.begun):
		return d.ErrLine(data), true // with an answer it is the last line
	case m != nil:
		q.keep(q.release())
		q.held = q.next(line)
	case !q.begun && strings.HasPrefix(trimmed, "↻"):
	case !q.begun && unknown.MatchString(trimmed):
		d.missing = true
	default:
		q.keep(q.release())
		q.keep(q.next(line))
		return d.ended(), true
	}
	return nil, true
}

// ended tells that Hermes has said all, as soon as both the answer and the id are
// there. They come at once, on two streams.
func (d *decoder) ended() []cliagent.Event {
	q := &d.quiet
	if d.stream || q.done || !q.begun || d.session == "" {
		return nil
	}
	q.done = true
	return []cliagent.Event{{Kind: cliagent.Done}}
}

// release is the line that was held back, since it turned out not to be the last.
func (q *quiet) release() string {
	line := q.held
	q.held = ""
	return line
}

// next is a line with the line ends before it.
func (q *quiet) next(line string) string {
	if q.begun {
		line = strings.Repeat("\n", q.blanks+1) + line
	}
	q.begun, q.blanks = true, 0
	return line
}

// maxAnswer is how much of an answer is kept.
const maxAnswer = 8 << 20

func (q *quiet) keep(text string) {
	q.answer = append(q.answer, text[:min(len(text), maxAnswer-len(q.answer))]...)
}

// looksOwn reports whether an id has the form of Hermes's own.
func looksOwn(id string) bool {
	if len(id) <= len(ownID) {
		return false
	}
	for i, c := range []byte(ownID) {
		isDigit := id[i] >= '0' && id[i] <= '9'
		if c == '_' && id[i] != '_' || c != '_' && !isDigit {
			return false
		}
	}
	return true
}

// maxSaid is how much of an answer is looked at for why a run failed.
const maxSaid = 4 << 10

// interrupted is the exit status after an interrupt.
const interrupted = 130

// plainEnd judges by the exit status: there is nothing else.
func (d *decoder) plainEnd(e cliagent.Exit) cliagent.Outcome {
	q := &d.quiet
	switch {
	case q.held != "" && d.session == "":
		d.ErrLine([]byte(strings.TrimSpace(q.held)))
	case q.held != "":
		q.keep(q.release())
	}
	d.worked = len(q.answer) > 0
	answer := strings.ToValidUTF8(string(q.answer), "\uFFFD")
	said := strings.TrimSpace(e.Stderr + "\n" + answer[:min(len(answer), maxSaid)])
	o := cliagent.Outcome{Kind: cliagent.Failed, Message: cmp.Or(said, "hermes printed nothing")}
	switch {
	case d.missing && d.call.Resume:
		o.Error, o.Message = cliagent.SessionNotFound, "Hermes does not know session "+d.call.Session
	case e.Stopped && !q.done:
		o.Error = cliagent.Crashed
	case e.Stopped, e.Code >= 0 && e.Code != interrupted && strings.HasPrefix(answer, "---"):
		o.Kind, o.Message, o.Final = cliagent.OK, "", answer // whatever the status says
	case e.Code == 1 && limited.MatchString(said):
		o.Kind = cliagent.MaxTurns
	case failure.MatchString(answer):
		o.Error = cliagent.Classify(answer)
	case e.Code == 0 && d.worked:
		o.Kind, o.Message, o.Final = cliagent.OK, "", answer
	case e.Code == 0:
		o.Kind = cliagent.Incomplete
	case e.Code == 1:
		o.Error = cliagent.Classify(said)
	case e.Code == 2:
		o.Error = cliagent.BadUsage
	default:
		o.Error = cliagent.Crashed
	}
	return o
}
