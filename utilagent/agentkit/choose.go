package agentkit

import (
	"fmt"

	"github.com/united-workforce/uwf/cas"
)

// way is how a run stands to the sessions before it.
type way string

const (
	first     way = ""          // there is nothing to go on in: the role's first turn
	anew      way = "anew"      // a new session, with the whole prompt
	continued way = "continued" // the same session
	forked    way = "forked"    // a copy of it as it is
	cutOff    way = "cut"       // a copy of its beginning
)

// session is what a run goes on in. The zero value: a new one, as there is nothing
// that could be said of it.
type session struct {
	way   way
	id    string   // "": a new one
	since cas.Hash // the node up to which the session knows the thread
	mark  string   // where the copy must end; only if it is cut
	why   string   // it starts over

	// rejected and interrupted: a try of this very step was made in it.
	rejected    string
	interrupted bool
}

// String says for the step's detail which was done; "" for a role's first turn.
func (s session) String() string {
	switch s.way {
	case first:
		return ""
	case anew:
		return "session: begun anew, because " + s.why
	case cutOff:
		return fmt.Sprintf("session: forked, cut at the end of step %s", s.since)
	}
	return "session: " + string(s.way)
}

func afresh(format string, args ...any) session {
	return session{way: anew, why: fmt.Sprintf(format, args...)}
}

// past is what is known when a session is chosen.
type past struct {
	agent        string
	thread, role string
	head         cas.Hash
	task         string // edgeSum of the instruction
	tried        record // of the session of the role's last try in this thread; zero: none
	last         *visit // the role's last step; nil: none
	made         record // of the session that the last step names; zero: nothing is known of it
	forks, cuts  bool   // what the agent can do
}

// visit is a step, as far as a session matters.
type visit struct {
	step    cas.Hash
	agent   string
	session string
}

// choose decides what a run goes on in. What it is given to know must be part of
// its thread's past: the steps up to the head, and tries of this very step in this
// very thread. A session that has seen more is cut, or left alone.
func choose(p past) session {
	own := p.tried.belongs(p.thread, p.role)
	if t := p.tried.Try; own && t != nil && t.of(p.head, p.task) && (t.Begun || t.Rejected != "") {
		return session{way: continued, id: p.tried.Session, since: p.head, rejected: t.Rejected, interrupted: t.Rejected == ""}
	}
	switch {
	case p.last == nil:
		return session{}
	case p.last.agent != p.agent:
		return afresh("%s has made the role's last step", p.last.agent)
	case p.made.Session == "":
		return afresh("nothing is known of session %s", p.last.session)
	}
	own = p.made.belongs(p.thread, p.role)
	s := session{id: p.last.session, since: p.last.step}
	switch {
	case own && p.made.goesOn(p.last.step, p.head):
		s.way = continued
	case !own && p.made.endsAt(p.last.step) && p.forks:
		s.way = forked
	case !own && p.made.endsAt(p.last.step):
		return afresh("the agent cannot copy session %s of another thread", s.id)
	case p.cuts && p.made.mark(p.last.step) != "":
		s.way, s.mark = cutOff, p.made.mark(p.last.step)
	case own && p.made.Step == p.last.step && p.made.Try.of(p.head, p.task):
		return afresh("session %s has failed at this step before", s.id)
	default:
		return afresh("session %s has gone on since step %s", s.id, p.last.step)
	}
	return s
}
