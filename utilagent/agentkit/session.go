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
	if err := load(k.triedFile(), &last); err != nil {
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
	if err := k.records().secure(known); err != nil {
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
		err = k.records().put(known)
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
	name := fmt.Sprintf("%s.%s-%08x.json", fileName(k.inv.thread), fileName(k.inv.role), sum.Sum32())
	return filepath.Join(k.records().dir, name)
}
