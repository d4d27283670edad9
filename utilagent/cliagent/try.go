package cliagent

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// task is what the next call is about.
type task struct {
	prompt  string
	session string // to go on in; "": a new one
	fork    bool
	cut     string
	message string            // a correction, which a new session must be told too
	letters []agentkit.Letter // that the prompt tells
}

// tried is how a call came out.
type tried struct {
	Outcome
	task    task
	text    string // the answer
	worked  bool   // the model said something
	usage   protocol.Usage
	counted bool   // the limit of turns was ours
	shown   string // the last text among the turns
	model   string
	version Version
}

// stoppedByRefusal reports whether the call ended without output after the program was refused
// something.
func (t tried) stoppedByRefusal() bool {
	return len(t.Refused) > 0 && (t.Kind == OK || t.Kind == Incomplete) && t.Value == nil && !isFramed(t.text)
}

// canGoOn reports whether the session can be continued.
func (t tried) canGoOn(s Sessions) bool { return !s.None && t.Session != "" }

// try makes one call. Its errors are failures on our own side, or that the step was stopped.
func (r *runner) try(t task) (tried, error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	ask, before, err := r.ask(t)
	if err != nil {
		return tried{}, err
	}
	c := &call{
		ask: ask, sessions: r.adapter.Sessions, isPlain: r.adapter.isPlain, count: r.adapter.CountsTurns,
		cancel: cancel, watch: newWatch(r.limits, cancel), record: record{put: r.tell}, program: r.adapter.Program,
		waits: waits{now: r.env.Now, show: r.show}, heard: r.req.Heard,
	}
	c.began = func(session string) error {
		r.uses(session)
		r.report(r.shelf.put(r.known(session, c, before)))
		return r.req.Began(session)
	}
	r.host.current(c)
	c.mu.Lock()
	c.listen(ctx)
	c.mu.Unlock()
	started := r.env.Now()
	outcome, err := r.transport.Call(ctx, ask, r.host)
	took := r.env.Now().Sub(started)
	err = errors.Join(err, c.close(ctx))
	cause := context.Cause(ctx)
	if stopped := r.stopped(); stopped != nil {
		return tried{}, stopped
	}
	if err != nil && cause == nil {
		return tried{}, err
	}
	if cause != nil && !isEnd(cause) {
		return tried{}, cause
	}
	out := c.judge(outcome, cause)
	r.plain(&out)
	out.task = t
	out.shown = c.record.last
	if out.Kind == SessionLost {
		before = protocol.Usage{} // these totals belong to another session
	}
	var totals protocol.Usage
	out.usage, totals = out.Usage.Since(before)
	out.usage.Turns = cmp.Or(out.Turns, c.record.messages)
	out.usage = out.usage.Priced(r.price)
	out.usage.DurationMs = took.Milliseconds()
	if out.Session != "" && out.Kind != SessionLost {
		r.uses(out.Session)
		r.report(r.shelf.put(r.known(out.Session, c, totals)))
	}
	return out, nil
}

// isEnd reports whether a call's cause is its outcome, and not an error on our own side, such
// as a full store.
func isEnd(cause error) bool {
	return errors.As(cause, new(*changedError)) || errors.As(cause, new(*vainError)) || errors.As(cause, new(*expired)) ||
		errors.Is(cause, agentkit.ErrWentOn) || errors.Is(cause, errTurns) || errors.Is(cause, errGrace)
}

// ask builds the call for a task, and returns what its session has cost before.
func (r *runner) ask(t task) (Call, protocol.Usage, error) {
	c := Call{
		Bin: r.program.Path, Version: r.version(), Help: r.program.Help,
		Prompt: t.prompt, Session: t.session, Resume: t.session != "", Fork: t.fork, Cut: t.cut,
		Cwd: r.cwd, RunDir: r.runDir, Model: r.model, Permission: r.permission, Confined: r.confinement != nil, Hidden: r.hidden,
		MaxTurns: r.maxTurns, MaxCostUSD: r.maxCost, Schema: r.req.Schema, Extra: r.extra, Env: r.env.Get,
		Environ: environment(r.env.Environ, r.adapter, Invocation{}), Now: r.env.Now(),
		Secrets: r.around.Secrets, Retries: r.req.Retries,
	}
	var preset string
	if r.adapter.Sessions.Preset {
		var err error
		if preset, err = newUUID(r.env.Rand); err != nil {
			return c, protocol.Usage{}, err
		}
	}
	if !c.Resume {
		c.Session = preset
		return c, protocol.Usage{}, nil
	}
	k, _ := r.shelf.get(t.session)
	c.Used = k.used()
	if c.Fork {
		c.Copy = preset
	}
	return c, k.Totals, nil
}

// known is what to remember about a call's session.
func (r *runner) known(session string, c *call, totals protocol.Usage) known {
	version := c.version
	if !version.Known() {
		version = r.version()
	}
	return known{
		Session: session, Program: r.command, Cwd: r.cwd, Thread: r.req.Thread, Model: c.model,
		Version: version.String(), Totals: totals, UsedMs: r.env.Now().UnixMilli(),
	}
}

// judge combines what the program said with why the call ended.
func (c *call) judge(o Outcome, cause error) tried {
	out := tried{Outcome: o, worked: c.record.messages > 0, model: c.model, version: c.version, text: c.record.answer.final(o.Final)}
	var (
		changed *changedError
		vain    *vainError
		late    *expired
	)
	switch {
	case errors.As(cause, &changed):
		out.Kind, out.Message = SessionLost, changed.Error()
	case errors.Is(cause, agentkit.ErrWentOn):
		out.Kind, out.Message = SessionLost, cause.Error()
	case o.Kind == OK:
	case errors.As(cause, &vain):
		out.Kind, out.Error, out.Message = Failed, vain.kind, cmp.Or(vain.text, o.Message)
	case errors.Is(cause, errTurns):
		out.Kind, out.counted, out.Message = MaxTurns, true, ""
	case errors.As(cause, &late):
		out.Kind, out.Message = Timeout, late.Error()
	case o.Kind == Failed && o.Error == errorkind.SessionNotFound && c.ask.Resume:
		out.Kind = SessionLost
	}
	if out.Kind != Failed {
		out.Error = "" // how the program ended follows from what we did to it
	}
	if out.Kind == OK && out.Value == nil && strings.TrimSpace(out.text) == "" {
		out.Kind = Incomplete
	}
	if c.ask.Resume && !c.sessions.Unverified && o.Session+c.session == "" && (out.Kind == OK || out.Kind == Incomplete) {
		out.Kind, out.Message = SessionLost, "it did not say which session it went on in"
	}
	if out.Session == "" && (out.worked || o.Kind == OK) {
		out.Session = c.session // a start that failed prints no session worth keeping
	}
	return out
}
