package main

import (
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// maxAnswer is how long an answer may be; the rest of a longer one is only kept in
// the run directory.
const maxAnswer = 2 << 20

// decoder takes all of stdout as the answer.
type decoder struct {
	session *regexp.Regexp // nil: there are no sessions
	id      string
	answer  strings.Builder
	cut     bool // there was more of it
}

// Line implements [cliagent.Decoder].
func (d *decoder) Line(line []byte) ([]cliagent.Event, bool) {
	switch {
	case d.find(line):
	case d.cut:
	default:
		room := maxAnswer - d.answer.Len()
		d.cut = len(line) > room
		d.answer.Write(line[:min(len(line), room)])
		d.answer.WriteByte('\n')
	}
	return nil, true
}

// ErrLine implements [cliagent.ErrLiner].
func (d *decoder) ErrLine(line []byte) []cliagent.Event {
	d.find(line)
	return nil
}

// find looks for the session's id. It reports whether the line holds nothing else.
func (d *decoder) find(line []byte) bool {
	if d.session == nil {
		return false
	}
	m := d.session.FindSubmatch(line)
	if m == nil || len(m[1]) == 0 {
		return false
	}
	d.id = string(m[1])
	return strings.TrimSpace(string(line)) == strings.TrimSpace(string(m[0]))
}

// End implements [cliagent.Decoder]. Nothing but the exit status reports whether the
// text is an answer.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	text := strings.TrimSpace(plaintext.Strip(d.answer.String()))
	if d.cut {
		text += "\n\n[the answer goes on; all of it is in the run directory]"
	}
	out := cliagent.Outcome{Kind: cliagent.OK, Final: text}
	if e.Code != 0 {
		e.Noise = cliagent.Excerpt(text)
		out = e.Unfinished()
	}
	out.Session = d.id
	return out
}
