package agentkit

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// ErrWentOn means that a session has gone on while it was copied: the copy may
// hold what is not part of this thread's past.
var ErrWentOn = errors.New("the session has gone on while it was copied")

// tried says in which session a role of a thread has worked last, step or not.
// What is to be known of that session is in its record.
type tried struct {
	Agent   string `json:"agent"`
	Thread  string `json:"thread"`
	Role    string `json:"role"`
	Session string `json:"sessionId"`
}

// pick finds the session that the run goes on in.
func (k *kit) pick(ctx context.Context) (session, error) {
	if !k.opts.Resumes {
		return session{}, nil
	}
	p, err := k.past(ctx)
	if err != nil {
		return session{}, err
	}
	s := choose(p)
	if s.id == "" {
		return s, nil
	}
	c, err := k.run.Config(ctx)
	if err != nil {
		return session{}, err
	}
	if resume := c.Agents[k.alias()].Resume; resume != nil && !*resume {
		return afresh("agents.%s.resume is false", k.alias()), nil
	}
	return s, nil
}

// past reads what is known.
func (k *kit) past(ctx context.Context) (past, error) {
	p := past{
		agent: protocol.AgentName(k.opts.Name), thread: k.inv.thread, role: k.inv.role,
		head: k.thread.Head, task: edgeSum(k.edge), cuts: k.opts.CutsSessions,
		forks: k.opts.ForksSessions || k.opts.CopiesSessions,
	}
	var last tried
	if err := sessions.Load(k.triedFile(), &last); err != nil {
		return past{}, err
	}
	var err error
	if p.tried, err = k.records().of(last.Session); err != nil {
		return past{}, err
	}
	step, found, err := step.LastStep(ctx, k.thread, k.inv.role)
	if err != nil || !found {
		return p, err
	}
	p.last = &visit{step: step.Hash, agent: step.Agent, session: step.SessionID}
	if p.last.agent == p.agent {
		p.made, err = k.records().of(step.SessionID)
	}
	return p, err
}

// enter marks the session that the run adds to. From now on it is not what its
// last step has left, whatever becomes of the run.
func (k *kit) enter() error {
	s := k.session
	if s.way != continued || k.opts.CopiesSessions || s.interrupted || s.rejected != "" {
		return nil // there is nothing to mark, or it is marked
	}
	known, err := k.records().of(s.id)
	if err != nil {
		return err
	}
	known.Try = &try{Head: k.thread.Head, Task: edgeSum(k.edge)}
	if err := k.records().put(known, true); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// own is the record of a session in which this role of this thread works.
func (k *kit) own(id string) (record, error) {
	known, err := k.records().of(id)
	if err != nil || !known.belongs(k.inv.thread, k.inv.role) {
		known = record{Session: id, Thread: k.inv.thread, Role: k.inv.role}
	}
	return known, err
}

// attempted remembers that a try of this step goes on in a session, or has ended
// there with an answer that could not be used.
func (k *kit) attempted(id, rejected string) {
	k.remember(id, func(known *record) {
		known.Try = &try{Head: k.thread.Head, Task: edgeSum(k.edge), Begun: true, Rejected: rejected}
	})
}

// made remembers that a session ends with a step.
func (k *kit) made(id string, step cas.Hash, at string) {
	k.remember(id, func(known *record) {
		known.Step, known.Try = step, nil
		if at != "" {
			known.Marks = append(known.Marks, mark{Step: step, At: at})
			known.Marks = known.Marks[max(0, len(known.Marks)-maxMarks):]
		}
	})
}

// remember changes what is known of the role's session. A step is not lost because
// its session is, so a failure is only told.
func (k *kit) remember(id string, change func(*record)) {
	if !k.opts.Resumes || id == "" {
		return
	}
	known, err := k.own(id)
	if err == nil {
		change(&known)
		err = k.records().put(known, false)
	}
	if err == nil && known.Try != nil && k.trying != id {
		k.trying = id
		err = durable.ReplaceJSON(durable.OS(), k.triedFile(), tried{
			Agent: k.records().agent, Thread: k.inv.thread, Role: k.inv.role, Session: id,
		})
	}
	if err != nil {
		fmt.Fprintf(k.run.Env.Stderr, "%s: the session cannot be continued later: %v\n", k.records().agent, err)
	}
}

// forget gives up a session in which this step was tried in vain.
func (k *kit) forget() {
	k.trying = ""
	if err := durable.OS().Remove(k.triedFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(k.run.Env.Stderr, "%s: %v\n", k.records().agent, err)
	}
}

// copied reports with [ErrWentOn] that a session that was copied as it was is not
// as it was any more.
func (k *kit) copied() error {
	s := k.session
	if s.way != forked {
		return nil
	}
	known, err := k.records().of(s.id)
	if err == nil && !known.endsAt(s.since) {
		err = ErrWentOn
	}
	return err
}

// triedFile is readable by a person; the sum keeps apart what cleaning or a file
// system that folds case would throw together.
func (k *kit) triedFile() string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%s\x00%s", k.inv.thread, k.inv.role)
	name := fmt.Sprintf("%s.%s-%08x.json", sessions.FileName(k.inv.thread), sessions.FileName(k.inv.role), sum.Sum32())
	return filepath.Join(string(k.records().Dir), name)
}

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

// record is what the kit knows of one session: what has gone into it.
type record struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	// Thread and Role are whose session it is. They alone add to it; others go on
	// in a copy.
	Thread string `json:"thread"`
	Role   string `json:"role"`
	// Step is the newest step that was made in it.
	Step cas.Hash `json:"step,omitempty"`
	// Try is what may have been added since. It is written, flushed, before that
	// can happen: a session that has gone on never looks as if it had not.
	Try   *try   `json:"try,omitempty"`
	Marks []mark `json:"marks,omitempty"` // oldest first
}

// try is an attempt at a step that has not been made yet, or never was.
type try struct {
	Head cas.Hash `json:"head"` // that the step was to follow
	Task string   `json:"task"` // edgeSum of its instruction
	// Begun: the agent has said that its work goes on in the session. Rejected is
	// why the answer could not be used.
	Begun    bool   `json:"begun,omitempty"`
	Rejected string `json:"rejected,omitempty"`
}

// mark is where a step ends in the session, in words of the agent.
type mark struct {
	Step cas.Hash `json:"step"`
	At   string   `json:"at"`
}

// maxMarks bounds a record: it is written with each step.
const maxMarks = 100

func (r record) belongs(thread, role string) bool { return r.Thread == thread && r.Role == role }

// endsAt reports whether a step is the last thing in the session.
func (r record) endsAt(step cas.Hash) bool { return r.Step == step && r.Try == nil }

// goesOn reports whether its owner can add to the session, at a head, after a step:
// what came since is nothing, or no more than an instruction at the same head that
// was not heard.
func (r record) goesOn(step, head cas.Hash) bool {
	return r.endsAt(step) || r.Step == step && !r.Try.Begun && r.Try.Rejected == "" && r.Try.Head == head
}

// mark is where a step ends in the session, "" if that is not known.
func (r record) mark(step cas.Hash) string {
	for _, m := range r.Marks {
		if m.Step == step {
			return m.At
		}
	}
	return ""
}

// of reports whether a try was one of this very step.
func (t try) of(head cas.Hash, task string) bool { return t.Head == head && t.Task == task }

// edgeSum tells one instruction from another. It is never empty.
func edgeSum(edge string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(edge)) // never fails
	return fmt.Sprintf("%016x", sum.Sum64())
}

// records is what is known of an agent's sessions.
type records struct {
	sessions.Dir
	agent string
}

func (k *kit) records() records {
	return records{sessions.Of(k.run.Dirs, k.opts.Name), protocol.AgentName(k.opts.Name)}
}

// of reads the record of a session, the zero value if there is none.
func (r records) of(session string) (known record, err error) {
	found, err := r.Get(session, sessions.Kit, &known)
	if !found || known.Session != session || known.Agent != r.agent {
		return record{}, err
	}
	return known, nil
}

// put writes a record. It is only a cache, and not flushed unless it is to hold after a power cut.
func (r records) put(known record, flushed bool) error {
	known.Agent = r.agent
	return r.Put(known.Session, sessions.Kit, known, flushed)
}
