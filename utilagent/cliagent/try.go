package cliagent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// task describes the next call.
type task struct {
	prompt   string
	session  string // session to continue, or ""
	fork     bool
	cut      string
	message  string             // a correction, which must be repeated in a new session
	messages []agentkit.Message // messages included in the prompt
}

// tried is the outcome of a call.
type tried struct {
	Outcome
	task    task
	text    string // the answer
	worked  bool   // the model produced output
	usage   protocol.Usage
	counted bool   // uwf enforced the turn limit
	shown   string // the last text among the turns
	model   string
	version Version
}

// stoppedByRefusal reports whether the call ended without output after the program was denied an action.
func (t tried) stoppedByRefusal() bool {
	return len(t.Refused) > 0 && (t.Kind == OK || t.Kind == Incomplete) && t.Value == nil && !isFramed(t.text)
}

func (t tried) canContinue(s Sessions) bool { return !s.None && t.Session != "" }

// try makes one call. It returns an error for failures on uwf's side, or if the step was stopped.
func (r *runner) try(t task) (tried, error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	ask, before, err := r.ask(t)
	if err != nil {
		return tried{}, err
	}
	c := &call{
		ask: ask, sessions: r.adapter.Sessions, isPlain: r.adapter.isPlain, count: r.adapter.CountsTurns,
		cancel: cancel, watch: newWatch(r.limits, cancel), record: record{put: r.addTurn},
		waits: waits{now: r.env.Now, show: r.show}, onMessage: r.req.MarkDelivered,
	}
	c.onSession = func(session string) error {
		r.uses(session)
		r.remember(r.known(session, c, before))
		return r.req.RecordSession(session)
	}
	r.host.current(c)
	started := r.env.Now()
	outcome, err := r.transport.Call(ctx, ask, r.host)
	took := r.env.Now().Sub(started)
	err = errors.Join(err, c.close(ctx))
	cause := context.Cause(ctx)
	if stopped := context.Cause(r.host.outer); stopped != nil {
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
		r.remember(r.known(out.Session, c, totals))
	}
	return out, nil
}

// isEnd reports whether a call's cause is an outcome rather than a failure on uwf's side, such as a full
// disk.
func isEnd(cause error) bool {
	return errors.As(cause, new(*changedError)) || errors.As(cause, new(*vainError)) || errors.As(cause, new(*expired)) ||
		errors.Is(cause, agentkit.ErrWentOn) || errors.Is(cause, errTurns) || errors.Is(cause, errGrace)
}

// ask builds the call for a task and returns the earlier totals of its session.
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
	k, _ := r.knownOf(t.session)
	c.Used = k.used()
	if c.Fork {
		c.Copy = preset
	}
	return c, k.Totals, nil
}

// known returns the facts to store about a call's session.
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

// judge combines the program's outcome with the cause that ended the call.
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
		out.Error = "" // we ended the program, so its status means nothing
	}
	if out.Kind == OK && out.Value == nil && strings.TrimSpace(out.text) == "" {
		out.Kind = Incomplete
	}
	if c.ask.Resume && !c.sessions.Unverified && o.Session+c.session == "" && (out.Kind == OK || out.Kind == Incomplete) {
		out.Kind, out.Message = SessionLost, "it did not report its session id"
	}
	if out.Session == "" && (out.worked || o.Kind == OK) {
		out.Session = c.session // a failed start prints no session worth keeping
	}
	return out
}

// quietTime is the time that a possibly complete turn waits for more of its message.
const quietTime = 300 * time.Millisecond

// changedError is the cause when a call continued a session other than the requested one.
type changedError struct{ want, got string }

func (e *changedError) Error() string {
	if e.want == e.got {
		return fmt.Sprintf("requested a copy of session %s, got the session itself", e.want)
	}
	return fmt.Sprintf("requested session %s, got %s", e.want, e.got)
}

// vainError is the cause when the program keeps repeating a request that cannot succeed or has failed for too
// long. The call is not retried either.
type vainError struct {
	kind errorkind.Kind
	text string
}

func (e *vainError) Error() string { return e.text }

// errTurns is the cause when a call reached the turn limit.
var errTurns = errors.New("turn limit reached")

// call is a running call. It turns events into turns and checks them against the request. Safe for concurrent
// use.
type call struct {
	ask       Call
	sessions  Sessions
	isPlain   func(id string) bool
	count     bool // enforce the turn limit here
	cancel    context.CancelCauseFunc
	watch     *watch
	onSession func(session string) error // called once for each accepted ID
	onMessage func(agentkit.Message) error

	mu      sync.Mutex
	waits   waits
	record  record
	quiet   *time.Timer
	session string // latest reported ID
	known   string // latest ID passed to began
	model   string
	version Version
	over    bool
}

// event handles an event; see [Host.Emit].
func (c *call) event(ctx context.Context, e Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil // too late to matter
	}
	if err := c.learn(e); err != nil {
		return c.end(err)
	}
	ctx = context.WithoutCancel(ctx) // output during a stop belongs to the record as well
	if err := c.record.take(ctx, e); err != nil {
		return c.end(err)
	}
	c.watch.event(e, c.record.running > 0)
	switch e.Kind {
	case MessageReceived:
		if err := c.onMessage(e.message); err != nil {
			return c.end(err)
		}
	case Retrying:
		c.waits.retrying(e.Status)
	case Text, Delta, Reasoning, Called, Returned, Done:
		c.waits.word()
	}
	c.later(ctx)
	if c.record.messages > 0 && c.session != "" && c.session != c.known {
		c.known = c.session
		if err := c.onSession(c.session); err != nil {
			return c.end(err)
		}
	}
	switch {
	case e.Kind == Retrying && e.Error != "":
		return c.end(&vainError{kind: e.Error, text: e.Text})
	case c.count && c.ask.MaxTurns > 0 && c.atLimit(e.Kind):
		return c.end(errTurns)
	}
	return nil
}

// atLimit reports whether the turn limit ends the call at this event: when the tools of the last turn have
// returned, or when the model calls another tool after it, since some programs never report a tool's return.
func (c *call) atLimit(k Kind) bool {
	switch over := c.record.messages - c.ask.MaxTurns; k {
	case Returned:
		return over >= 0 && c.record.running == 0
	case Called:
		return over > 0
	}
	return false
}

func (c *call) end(cause error) error {
	c.cancel(cause)
	return cause
}

// learn records the session details of an event.
func (c *call) learn(e Event) error {
	if e.Model != "" {
		c.model = e.Model
	}
	if e.Version != "" {
		c.version = ParseVersion(e.Version)
	}
	if e.Session == "" || e.Session == c.session || !c.isPlain(e.Session) {
		return nil
	}
	if c.session == "" && c.ask.Resume {
		if err := c.verify(e.Session); err != nil {
			return err
		}
	}
	c.session = e.Session
	return nil
}

// verify compares the first ID of a continued session with the requested one.
func (c *call) verify(got string) error {
	same := got == c.ask.Session
	if c.ask.Fork != same || !c.ask.Fork && c.sessions.Renames {
		return nil // same ID when continuing, another for a copy
	}
	return &changedError{want: c.ask.Session, got: got}
}

// later schedules the storing of a turn in case nothing follows for a while.
func (c *call) later(ctx context.Context) {
	if c.quiet != nil {
		c.quiet.Reset(quietTime)
		return
	}
	c.quiet = time.AfterFunc(quietTime, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.over {
			return
		}
		if err := c.record.quiet(ctx); err != nil {
			c.cancel(err)
		}
	})
}

// close ends the call; later events are ignored. The pending turn is stored with a context that outlives the
// call.
func (c *call) close(ctx context.Context) error {
	c.watch.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.quiet != nil {
		c.quiet.Stop()
	}
	return c.record.flush(context.WithoutCancel(ctx))
}

// answer tracks which of the model's texts is the answer: the last one after the last tool event. Models tend
// to add a remark, so the last text that begins with a frontmatter block is kept as well.
type answer struct {
	last   text
	open   bool // the next piece continues last
	id     string
	framed string
}

// text adds a complete text.
func (a *answer) text(s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	a.end()
	a.last.add(s)
}

// delta adds a piece of a text.
func (a *answer) delta(s, id string) {
	if !a.open || id != a.id {
		a.end()
	}
	a.open, a.id = true, id
	a.last.add(s)
}

// tool marks earlier texts as not the final answer.
func (a *answer) tool() {
	a.end()
	a.last = text{}
}

// pause ends a text that arrived in pieces.
func (a *answer) pause() { a.open = false }

// end finishes the current text.
func (a *answer) end() {
	a.keep(a.last.String())
	a.last = text{}
	a.open = false
}

func (a *answer) keep(s string) {
	if isFramed(s) {
		a.framed = s
	}
}

// final returns the answer. stated is the answer according to the program itself, or "".
func (a *answer) final(stated string) string {
	if strings.TrimSpace(stated) == "" {
		stated = a.last.String()
	}
	if a.framed != "" && !isFramed(stated) {
		return a.framed
	}
	return stated
}

// maxText bounds how much of a text is held in memory. A longer text keeps its beginning, which contains the
// frontmatter.
const maxText = 2 << 20

// text collects the pieces of a text, up to maxText.
type text struct{ pieces []byte }

func (t *text) add(s string) { t.pieces = append(t.pieces, s[:min(len(s), maxText-len(t.pieces))]...) }

func (t *text) empty() bool { return len(t.pieces) == 0 }

// String returns the text without an incomplete character at its end.
func (t *text) String() string { return strings.ToValidUTF8(string(t.pieces), "") }

// isFramed reports whether a text begins with a frontmatter block.
func isFramed(s string) bool {
	_, err := frontmatter.Parse(s)
	return !errors.Is(err, frontmatter.ErrNone)
}

// maxContent bounds a text or result in a turn. The part cut from its middle is in the run directory.
const maxContent = 1 << 20

// record converts events to turns. Everything in one message of the model is one turn, stored when it is
// complete.
type record struct {
	put func(context.Context, protocol.Turn) error

	answer   answer
	pending  protocol.Turn // without its texts
	content  text
	thought  text
	open     bool   // pending has begun
	pieces   bool   // its text is still arriving in pieces
	id       string // message ID of the pending turn
	sub      bool
	messages int // messages of the main agent
	running  int // tools that have not returned
	notices  []string
	last     string // last turn of the main agent with a text
}

// take handles an event.
func (r *record) take(ctx context.Context, e Event) error {
	switch e.Kind {
	case Text, Delta, Reasoning, Called:
		if !r.joins(e) {
			if err := r.flush(ctx); err != nil {
				return err
			}
			r.begin(e)
		}
		r.add(e)
	case Returned:
		return r.returned(ctx, e)
	case Break, Done:
		r.answer.pause()
		return r.flush(ctx)
	case MessageReceived:
		if err := r.flush(ctx); err != nil {
			return err
		}
		return r.store(ctx, protocol.Turn{Role: protocol.TurnUser, Content: e.message.Text}, false)
	case Notice:
		r.notices = append(r.notices, e.Text)
	}
	return nil
}

// joins reports whether an event belongs to the pending turn.
func (r *record) joins(e Event) bool {
	switch {
	case !r.open || e.Sub != r.sub || e.ID != r.id:
		return false
	case e.Kind == Called || e.Kind == Delta && r.pieces:
		return true
	}
	// Text after a text or a call begins a new turn, because it may be the answer.
	return r.silent()
}

// silent reports whether the pending turn contains only reasoning.
func (r *record) silent() bool { return r.content.empty() && len(r.pending.ToolCalls) == 0 }

func (r *record) begin(e Event) {
	r.pending = protocol.Turn{Role: protocol.TurnAssistant}
	r.content, r.thought = text{}, text{}
	if !e.Sub && r.isNew(e) {
		r.messages++
	}
	r.open, r.id, r.sub, r.pieces = true, e.ID, e.Sub, false
}

// isNew reports whether an event begins a new message of the model. Without message IDs, a call belongs to
// the message of any call that is still running, because the model continues only when all have returned.
func (r *record) isNew(e Event) bool {
	if e.ID != "" {
		return e.ID != r.id || r.sub
	}
	return e.Kind != Called || r.running == 0
}

func (r *record) add(e Event) {
	switch e.Kind {
	case Text:
		r.content.add(e.Text)
		if !e.Sub {
			r.answer.text(e.Text)
		}
	case Delta:
		r.content.add(e.Text)
		r.pieces = true
		if !e.Sub {
			r.answer.delta(e.Text, e.ID)
		}
	case Reasoning:
		r.thought.add(e.Text)
		r.answer.pause()
	case Called:
		r.pending.ToolCalls = append(r.pending.ToolCalls, e.Call)
		r.pieces = false
		r.running++
		if !e.Sub {
			r.answer.tool()
		}
	}
}

// returned stores a tool's result.
func (r *record) returned(ctx context.Context, e Event) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.running = max(0, r.running-1)
	if !e.Sub {
		r.answer.tool()
	}
	text := e.Text
	if e.Failed {
		text = "[failed] " + text
	}
	return r.store(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: e.Call.ID, Content: text}, e.Sub)
}

// flush stores the pending turn and pending notices.
func (r *record) flush(ctx context.Context) error {
	if r.open {
		r.open = false
		r.pending.Content, r.pending.Reasoning = r.content.String(), r.thought.String()
		if err := r.store(ctx, r.pending, r.sub); err != nil {
			return err
		}
	}
	for _, text := range r.notices {
		if err := r.store(ctx, protocol.Turn{Role: protocol.TurnSystem, Content: text}, false); err != nil {
			return err
		}
	}
	r.notices = nil
	return nil
}

// quiet stores the pending turn unless it is certainly incomplete: a tool may run for long, and live views
// should show its call.
func (r *record) quiet(ctx context.Context) error {
	if r.pieces || r.open && r.silent() {
		return nil
	}
	return r.flush(ctx)
}

func (r *record) store(ctx context.Context, t protocol.Turn, sub bool) error {
	if t.Content == "" && t.Reasoning == "" && len(t.ToolCalls) == 0 && t.Role != protocol.TurnTool {
		return nil
	}
	t.Content, t.Reasoning = clip(t.Content), clip(t.Reasoning)
	if t.Role == protocol.TurnAssistant && !sub && t.Content != "" {
		r.last = t.Content
	}
	if sub {
		t.Content = strings.TrimRight("[sub-agent] "+t.Content, " ")
	}
	return r.put(ctx, t)
}

// clip removes the middle of a text that is too long.
func clip(s string) string {
	begin, end, left := plaintext.Ends(s, maxContent/2, maxContent/2)
	if left == 0 {
		return s
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", begin, left, end)
}

// Calls generates tool events. It reports each call once, however often the program does, and before its
// result, even if the program does not report its start. The zero value is ready to use.
type Calls struct{ reported map[string]bool }

// Begun returns the events for a running call.
func (c *Calls) Begun(call protocol.ToolCall) []Event {
	if c.reported[call.ID] {
		return nil
	}
	if c.reported == nil {
		c.reported = map[string]bool{}
	}
	c.reported[call.ID] = true
	return []Event{{Kind: Called, Call: call}}
}

// Ended returns the events for a finished call. Another call may reuse its ID.
func (c *Calls) Ended(call protocol.ToolCall, result string, failed bool) []Event {
	events := c.Begun(call)
	delete(c.reported, call.ID)
	return append(events, Event{Kind: Returned, Call: protocol.ToolCall{ID: call.ID}, Text: result, Failed: failed})
}

// Seen is an adapter's interpretation of a run.
type Seen struct {
	Outcome
	Answer  string // the answer among the texts
	Turns   []protocol.Turn
	Worked  int // number of messages from the model
	Model   string
	Version Version
}

// Replay lets an adapter decode the recorded output of a call, for tests with recorded runs and for
// diagnosis.
func Replay(ctx context.Context, a Adapter, c Call, stdout io.Reader, e Exit) (Seen, error) {
	var seen Seen
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limits := a.Timeouts.withDefaults()
	now := &call{
		ask: c, sessions: a.Sessions, isPlain: a.isPlain, count: a.CountsTurns, cancel: cancel, watch: newWatch(limits, cancel),
		onSession: func(string) error { return nil },
		record: record{put: func(_ context.Context, t protocol.Turn) error {
			t.Index = len(seen.Turns)
			seen.Turns = append(seen.Turns, t)
			return nil
		}},
	}
	h := &Host{limits: limits, outer: ctx}
	h.current(now)
	r := &lineReader{decoder: a.Decoder(c), host: h, noise: &output.Tail{}}
	if d, ok := r.decoder.(ErrLiner); ok {
		for line := range strings.SplitSeq(e.Stderr, "\n") {
			r.take(ctx, func() ([]Event, bool) { return d.ErrLine([]byte(line)), true }, nil)
		}
	}
	lines := bufio.NewReader(stdout)
	r.read(ctx, func() ([]byte, error) {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = nil
		}
		return bytes.TrimRight(line, "\r\n"), err
	})
	e.Noise = r.noise.Text()
	outcome := r.decoder.End(e)
	if err := errors.Join(r.err, now.close(ctx)); err != nil {
		return seen, err
	}
	out := now.judge(outcome, context.Cause(ctx))
	seen.Outcome, seen.Answer, seen.Worked = out.Outcome, out.text, now.record.messages
	seen.Model, seen.Version = out.model, out.version
	return seen, nil
}
