package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// peer handles the agent's messages. Its methods are called one at a time, in the order of arrival, so the
// answer to a call is seen after every earlier notification.
type peer interface {
	// notified handles a notification.
	notified(method string, params json.RawMessage)
	// asked handles a request.
	asked(method string, params json.RawMessage) (result any, err error)
}

// conn is a JSON-RPC connection: calls and their answers, notifications, and requests from the other side.
// [conn.feed] passes lines to it. It buffers only what is not answered yet.
type conn struct {
	peer   peer
	outbox chan []byte

	mu      sync.Mutex
	last    int
	pending map[string]chan message

	over  chan struct{} // closed by end
	cause error         // reason the connection ended
	once  sync.Once
}

// newConn returns a connection that writes to w. A write may block until the other side reads; w is closed
// when the connection ends.
func newConn(w io.WriteCloser, p peer) *conn {
	c := &conn{
		peer: p, outbox: make(chan []byte, 16), pending: map[string]chan message{}, over: make(chan struct{}),
	}
	go c.write(w)
	return c
}

// write sends the outbox until the connection ends, and then what remains in it.
func (c *conn) write(w io.WriteCloser) {
	defer func() { _ = w.Close() }() // signals the end to the other side; an error has no recipient
	for {
		select {
		case line := <-c.outbox:
			if _, err := w.Write(line); err != nil {
				c.end(fmt.Errorf("write to the agent: %w", err))
				return
			}
			continue
		case <-c.over:
		}
		select {
		case line := <-c.outbox:
			if _, err := w.Write(line); err != nil {
				return
			}
		default:
			return
		}
	}
}

// end makes all pending calls return err. Only the first call has an effect.
func (c *conn) end(err error) {
	c.once.Do(func() {
		c.cause = err
		close(c.over)
	})
}

// ended reports whether the connection is over.
func (c *conn) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// post queues a line.
func (c *conn) post(ctx context.Context, m outgoing) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	select {
	case c.outbox <- line:
		return nil
	case <-c.over:
		return c.cause
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call sends a request, waits for the answer and decodes it into result unless that is nil. It returns an
// [*RPCError], ctx's cause, or the reason the connection ended.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	c.mu.Lock()
	c.last++
	id := strconv.Itoa(c.last)
	answer := make(chan message, 1)
	c.pending[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	if err := c.post(ctx, outgoing{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return err
	}
	select {
	case m := <-answer:
		return readAnswer(m, method, result)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.over:
	}
	select {
	case m := <-answer: // it arrived just before the connection ended
		return readAnswer(m, method, result)
	default:
		return c.cause
	}
}

func readAnswer(m message, method string, result any) error {
	if m.err != nil {
		return m.err
	}
	if result == nil {
		return nil
	}
	if err := lenient(m.result, result); err != nil {
		return fmt.Errorf("cannot parse the answer to %s: %w", method, err)
	}
	return nil
}

// lenient decodes JSON and skips fields of unexpected types, so that one agent's deviation does not discard
// the rest.
func lenient(raw json.RawMessage, v any) error {
	err := json.Unmarshal(raw, v)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil
	}
	return err
}

// notify sends a notification.
func (c *conn) notify(ctx context.Context, method string, params any) error {
	return c.post(ctx, outgoing{Method: method, Params: params})
}

// feed handles a line from the agent. It reports whether the line was a message.
func (c *conn) feed(ctx context.Context, line []byte) bool {
	m := decode(line)
	switch m.kind {
	case notification:
		c.peer.notified(m.method, m.params)
	case request:
		result, err := c.peer.asked(m.method, m.params)
		c.reply(ctx, m.id, result, err)
	case response:
		c.answered(m)
	default:
		return false
	}
	return true
}

// answered delivers an answer to the pending call. It drops answers without one, such as a second answer to
// the same ID.
func (c *conn) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := key(m.id)
	if m.id == nil && len(c.pending) == 1 {
		for id = range c.pending { // the agent could not parse the only pending request
		}
	}
	if waiting, ok := c.pending[id]; ok {
		delete(c.pending, id)
		waiting <- m
	}
}

// reply sends an answer. It can fail only if the connection has ended, which every pending call reports.
func (c *conn) reply(ctx context.Context, id json.RawMessage, result any, err error) {
	out := outgoing{ID: id}
	if err == nil {
		out.Result, err = json.Marshal(result)
	}
	if err != nil {
		out.Result, out.Error = nil, &outgoingError{Code: codeInternal, Message: err.Error()}
		if rpc := (*RPCError)(nil); errors.As(err, &rpc) {
			out.Error.Code = rpc.Code
		}
	}
	_ = c.post(context.WithoutCancel(ctx), out)
}

// transport keeps an agent running across the calls of a step, so that corrections go to the open session
// without a replay.
type transport struct {
	settings settings
	host     *cliagent.Host
	client   *client // nil if no agent is running
}

// Call implements cliagent.Transport.
func (t *transport) Call(ctx context.Context, c cliagent.Call, h *cliagent.Host) (cliagent.Outcome, error) {
	if t.host = h; t.client == nil {
		if err := t.launch(c, h); err != nil {
			return cliagent.Outcome{}, err
		}
		if err := t.greet(ctx); err != nil {
			return t.failed(ctx, err)
		}
	}
	held := t.client.session == c.Session // the session is still open, so the agent knows it
	if err := t.enter(ctx, c); err != nil {
		return t.failed(ctx, err)
	}
	emit := func(e cliagent.Event) {
		_ = h.Emit(ctx, e) // on error, ctx has been cancelled with it
	}
	emit(cliagent.Event{
		Kind: cliagent.Started, Session: t.client.session, Model: t.client.model(), Version: t.client.agent.Info.Version,
	})
	if ctx.Err() != nil {
		return t.failed(ctx, context.Cause(ctx))
	}
	result, p, err := t.client.ask(ctx, c.Prompt, h.Pace, emit)
	if err != nil {
		o, err := t.failed(ctx, err)
		if o.Error != errorkind.SessionNotFound {
			o.Session = p.session
		}
		o.Usage = usage(prompted{}, p.emitter)
		return o, err
	}
	emit(cliagent.Event{Kind: cliagent.Break, Model: modelOf(result, p.emitter)})
	return t.client.outcome(result, p, c.Resume && !held), nil
}

// modelOf returns the model that answered, if the agent reported it.
func modelOf(r prompted, t *emitter) string {
	if list := r.Meta.Quota.Models; len(list) > 0 {
		return list[0].Model
	}
	return t.model
}

// launch starts the agent's program.
func (t *transport) launch(c cliagent.Call, h *cliagent.Host) error {
	space, err := tools.OpenWorkspace(c.Cwd)
	if err != nil {
		return err
	}
	space.Limit(h.OffLimits())
	p, err := h.Start(cliagent.Invocation{Args: c.Extra, Open: true})
	if err != nil {
		return errors.Join(err, space.Close())
	}
	t.client = newClient(p, &service{permission: c.Permission, space: space})
	return nil
}

// greet initializes the connection and logs in if requested.
func (t *transport) greet(ctx context.Context) error {
	s := t.settings
	if err := t.client.start(ctx, s.offers(t.client.serve.permission), ownVersion()); err != nil {
		return err
	}
	if s.auth == "" {
		return nil
	}
	return t.client.authenticate(ctx, s.auth)
}

// enter makes the session of a call the current one.
func (t *transport) enter(ctx context.Context, c cliagent.Call) error {
	client := t.client
	if c.Resume && !c.Fork && client.session == c.Session {
		return nil // still open
	}
	if err := client.begin(ctx, c); err != nil {
		return err
	}
	return client.configure(ctx, c.Permission, t.settings.mode, c.Model)
}

// begin opens the session of a call. It tries each announced way in turn, because some agents announce one
// that fails.
func (c *client) begin(ctx context.Context, call cliagent.Call) error {
	if !call.Resume {
		return c.opened(openNew, c.open(ctx, openNew, "", call.Cwd))
	}
	err := errCannotContinue
	for _, how := range c.ways(call.Fork) {
		if how == openLoad && c.destroys(call) {
			return fmt.Errorf("%w: this agent destroys a session that is loaded within a minute of its last use", errCannotContinue)
		}
		err = c.opened(how, c.open(ctx, how, call.Session, call.Cwd))
		var rpc *RPCError
		if !errors.As(err, &rpc) || rpc.Code != codeMethodNotFound {
			return err
		}
	}
	return err
}

// destroys reports whether resuming would hit a bug in Gemini CLI 0.61: session file names have minute
// resolution, so a load within the same minute overwrites the session.
func (c *client) destroys(call cliagent.Call) bool {
	const minute = "200601021504"
	return c.agent.Info.Name == "gemini-cli" && !call.Used.IsZero() &&
		call.Used.UTC().Format(minute) == call.Now.UTC().Format(minute)
}

// opened wraps an error from opening an existing session in [errCannotContinue]: the agent should know the
// session, so an error response means that it is lost. Authentication errors are returned as they are.
func (c *client) opened(how opening, err error) error {
	var rpc *RPCError
	if how == openNew || !errors.As(err, &rpc) || errorKind(rpc) == errorkind.Auth {
		return err
	}
	return fmt.Errorf("%w: %w", errCannotContinue, err)
}

// failed ends a call with an error. It stops an agent that has exited or does not answer, so that the next
// call starts a new one.
func (t *transport) failed(ctx context.Context, err error) (cliagent.Outcome, error) {
	client := t.client
	if errors.As(err, new(*RPCError)) || errors.As(err, new(*choiceError)) || errors.Is(err, errCannotContinue) {
		return client.failure(ctx, err), nil
	}
	gone := ctx.Err() == nil && client.conn.ended()
	t.client = nil
	if gone {
		client.expire(ctx)
	}
	exit, closeErr := client.close(t.host.Pace(), ctx.Err() == nil)
	if gone {
		return client.crashed(exit, err), closeErr
	}
	return client.failure(ctx, err), closeErr
}

// Close implements cliagent.Transport.
func (t *transport) Close() error {
	if t.client == nil {
		return nil
	}
	client := t.client
	t.client = nil
	_, err := client.close(t.host.Pace(), true)
	return err
}

// ownVersion returns the version sent to the agent.
func ownVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
