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

// ErrWentOn reports that a session was used while it was being copied: the copy may contain turns outside
// this thread's history.
var ErrWentOn = errors.New("the session changed while it was copied")

// tried records the session in which a role of a thread last worked, whether or not a step resulted. The
// session's own record holds the rest.
type tried struct {
	Agent   string `json:"agent"`
	Thread  string `json:"thread"`
	Role    string `json:"role"`
	Session string `json:"sessionId"`
}

// pick chooses the session in which the run continues.
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

// past collects the facts needed to choose a session.
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

// enter marks the session that the run appends to. From now on it differs from the state its last step left,
// whatever the outcome of the run.
func (k *kit) enter(s session) error {
	if s.way != continued || k.opts.CopiesSessions || s.interrupted || s.rejected != "" {
		return nil // nothing to mark, or already marked
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

// own returns the record of a session that belongs to this role and thread.
func (k *kit) own(id string) (record, error) {
	known, err := k.records().of(id)
	if err != nil || !known.belongs(k.inv.thread, k.inv.role) {
		known = record{Session: id, Thread: k.inv.thread, Role: k.inv.role}
	}
	return known, err
}

// attempted records that a try of this step continues in a session, or ended there with a rejected answer.
func (k *kit) attempted(id, rejected string) {
	k.remember(id, func(known *record) {
		known.Try = &try{Head: k.thread.Head, Task: edgeSum(k.edge), Begun: true, Rejected: rejected}
	})
}

// made records that a session ends with a step.
func (k *kit) made(id string, step cas.Hash, at string) {
	k.remember(id, func(known *record) {
		known.Step, known.Try = step, nil
		if at != "" {
			known.Marks = append(known.Marks, mark{Step: step, At: at})
			known.Marks = known.Marks[max(0, len(known.Marks)-maxMarks):]
		}
	})
}

// remember updates the record of the role's session. A failure only causes a warning, because the step is
// valid without its session.
func (k *kit) remember(id string, change func(*record)) {
	if !k.opts.Resumes || id == "" {
		return
	}
	known, err := k.own(id)
	if err == nil {
		rejected := known.Try != nil && known.Try.Rejected != "" // quotes an answer, which must not stay in the file
		change(&known)
		err = k.records().put(known, rejected)
	}
	if err == nil && known.Try != nil && k.trying != id {
		k.trying = id
		err = durable.AddJSON(durable.OS(), k.triedFile(), tried{
			Agent: k.records().agent, Thread: k.inv.thread, Role: k.inv.role, Session: id,
		})
	}
	if err != nil {
		fmt.Fprintf(k.run.Env.Stderr, "%s: the session cannot be continued later: %v\n", k.records().agent, err)
	}
}

// forget drops a session in which this step failed.
func (k *kit) forget() {
	k.trying = ""
	if err := durable.OS().Remove(k.triedFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(k.run.Env.Stderr, "%s: %v\n", k.records().agent, err)
	}
}

// copied returns [ErrWentOn] if a session that was copied whole has changed since.
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

// triedFile returns a readable file name. The checksum distinguishes names that cleaning or a
// case-insensitive file system would merge.
func (k *kit) triedFile() string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%s\x00%s", k.inv.thread, k.inv.role)
	name := fmt.Sprintf("%s.%s-%08x.json", sessions.FileName(k.inv.thread), sessions.FileName(k.inv.role), sum.Sum32())
	return filepath.Join(string(k.records().Dir), name)
}

// way is the relation of a run to earlier sessions.
type way string

const (
	first     way = ""          // the role's first visit: no session to continue
	anew      way = "anew"      // a new session with the whole prompt
	continued way = "continued" // the same session
	forked    way = "forked"    // a full copy
	cutOff    way = "cut"       // a truncated copy
)

// session is the session in which a run continues. The zero value means a new one for a role's first visit.
type session struct {
	way   way
	id    string   // "" for a new session
	since cas.Hash // the newest node that the session has seen
	mark  string   // end of the copy, if it is truncated
	why   string   // why the run starts over, or ""

	// rejected and interrupted: an earlier try of this step worked in the session.
	rejected    string
	interrupted bool
}

// String describes the choice for the step's detail, or returns "" for a role's first visit.
func (s session) String() string {
	switch s.way {
	case first:
		return ""
	case anew:
		return "session: started over, because " + s.why
	case cutOff:
		return fmt.Sprintf("session: forked, cut at the end of step %s", s.since)
	}
	return "session: " + string(s.way)
}

func afresh(format string, args ...any) session {
	return session{way: anew, why: fmt.Sprintf(format, args...)}
}

// past holds the facts from which a session is chosen.
type past struct {
	agent        string
	thread, role string
	head         cas.Hash
	task         string // edgeSum of the instruction
	tried        record // session of the role's last try in this thread; zero if none
	last         *visit // the role's last step, or nil
	made         record // session of the last step; zero if unknown
	forks, cuts  bool   // the agent's capabilities
}

// visit is the part of a step that matters for choosing a session.
type visit struct {
	step    cas.Hash
	agent   string
	session string
}

// choose decides in which session a run continues. The session may contain only the thread's history: the
// steps up to the head, and tries of this step in this thread. A session that has seen more is truncated or
// not used.
func choose(p past) session {
	own := p.tried.belongs(p.thread, p.role)
	if t := p.tried.Try; own && t != nil && t.of(p.head, p.task) && (t.Begun || t.Rejected != "") {
		return session{way: continued, id: p.tried.Session, since: p.head, rejected: t.Rejected, interrupted: t.Rejected == ""}
	}
	switch {
	case p.last == nil:
		return session{}
	case p.last.agent != p.agent:
		return afresh("%s made the role's last step", p.last.agent)
	case p.made.Session == "":
		return afresh("session %s is unknown", p.last.session)
	}
	own = p.made.belongs(p.thread, p.role)
	s := session{id: p.last.session, since: p.last.step}
	switch {
	case own && p.made.canAppend(p.last.step, p.head):
		s.way = continued
	case !own && p.made.endsAt(p.last.step) && p.forks:
		s.way = forked
	case !own && p.made.endsAt(p.last.step):
		return afresh("the agent cannot copy session %s of another thread", s.id)
	case p.cuts && p.made.mark(p.last.step) != "":
		s.way, s.mark = cutOff, p.made.mark(p.last.step)
	case own && p.made.Step == p.last.step && p.made.Try.of(p.head, p.task):
		return afresh("session %s failed at this step before", s.id)
	default:
		return afresh("session %s has new messages since step %s", s.id, p.last.step)
	}
	return s
}

// record describes the contents of one session.
type record struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	// Thread and Role own the session. Only they append to it; others continue in a copy.
	Thread string `json:"thread"`
	Role   string `json:"role"`
	// Step is the newest step that was made in the session.
	Step cas.Hash `json:"step,omitempty"`
	// Try is an attempt after Step. It is flushed to disk before the session can change, so that a changed
	// session is always recorded as such.
	Try   *try   `json:"try,omitempty"`
	Marks []mark `json:"marks,omitempty"` // oldest first
}

// try is an attempt at a step that has not been made yet, or never was.
type try struct {
	Head cas.Hash `json:"head"` // the head that the step was to follow
	Task string   `json:"task"` // edgeSum of its instruction
	// Begun means the agent reported that it works in the session. Rejected is the reason why the answer was
	// rejected.
	Begun    bool   `json:"begun,omitempty"`
	Rejected string `json:"rejected,omitempty"`
}

// mark is the position at which a step ends in the session, in the agent's own format.
type mark struct {
	Step cas.Hash `json:"step"`
	At   string   `json:"at"`
}

// maxMarks bounds the size of a record, which is rewritten with each step.
const maxMarks = 100

func (r record) belongs(thread, role string) bool { return r.Thread == thread && r.Role == role }

// endsAt reports whether a step is the last thing in the session.
func (r record) endsAt(step cas.Hash) bool { return r.Step == step && r.Try == nil }

// canAppend reports whether the owner can append to the session after a step at a head: nothing was added since,
// or only an unanswered instruction at the same head.
func (r record) canAppend(step, head cas.Hash) bool {
	return r.endsAt(step) || r.Step == step && !r.Try.Begun && r.Try.Rejected == "" && r.Try.Head == head
}

// mark returns the position at which a step ends, or "" if unknown.
func (r record) mark(step cas.Hash) string {
	for _, m := range r.Marks {
		if m.Step == step {
			return m.At
		}
	}
	return ""
}

// of reports whether t is a try of the step that follows head with the given task.
func (t try) of(head cas.Hash, task string) bool { return t.Head == head && t.Task == task }

// edgeSum returns a checksum of an instruction. It is never empty.
func edgeSum(edge string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(edge)) // never fails
	return fmt.Sprintf("%016x", sum.Sum64())
}

// records stores what is known about an agent's sessions.
type records struct {
	sessions.Dir
	agent string
}

func (k *kit) records() records {
	return records{sessions.Of(k.run.Dirs, k.opts.Name), protocol.AgentName(k.opts.Name)}
}

// of reads the record of a session. It returns the zero value if there is none.
func (r records) of(session string) (known record, err error) {
	found, err := r.Get(session, sessions.Kit, &known)
	if !found || known.Session != session || known.Agent != r.agent {
		return record{}, err
	}
	return known, nil
}

// put writes a record. It is only a cache, so it is flushed only if it must survive a power failure.
func (r records) put(known record, flushed bool) error {
	known.Agent = r.agent
	return r.Put(known.Session, sessions.Kit, known, flushed)
}
