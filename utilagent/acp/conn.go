package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// peer is what the agent's messages are for. Its methods are called one after
// the other, in the order in which the messages came, so that an answer to a
// call is seen after everything that was told before it.
type peer interface {
	// notified takes a notification.
	notified(method string, params json.RawMessage)
	// asked answers a request.
	asked(method string, params json.RawMessage) (result any, err error)
}

// conn is a connection in the protocol's terms: calls with their answers,
// notifications, requests of the other side. Lines are given to it by
// [conn.feed]; it holds no more than what is not answered yet.
type conn struct {
	peer   peer
	outbox chan []byte

	mu      sync.Mutex
	last    int
	pending map[string]chan message

	over  chan struct{} // closed by end
	cause error         // why it is over
	once  sync.Once
}

// newConn makes a connection that writes to w, which may block for as long as
// the other side does not read: it is closed when the connection is over.
func newConn(w io.WriteCloser, p peer) *conn {
	c := &conn{
		peer: p, outbox: make(chan []byte, 16), pending: map[string]chan message{}, over: make(chan struct{}),
	}
	go c.write(w)
	return c
}

// write sends what is in the outbox, and after the end what is left in it.
func (c *conn) write(w io.WriteCloser) {
	defer func() { _ = w.Close() }() // the other side reads the end; there is nobody to tell of an error
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

// end makes everything that waits return err. Only the first end counts.
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

// call asks and waits for the answer, which is decoded into result unless that
// is nil. Errors: [*RPCError], ctx's cause, why the connection is over.
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
	case m := <-answer: // it came just before the end
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
		return fmt.Errorf("the answer to %s cannot be read: %w", method, err)
	}
	return nil
}

// lenient decodes JSON. A field of another type than expected is left out: what
// one agent sends in a form of its own must not spoil the rest.
func lenient(raw json.RawMessage, v any) error {
	err := json.Unmarshal(raw, v)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil
	}
	return err
}

// notify tells without an answer.
func (c *conn) notify(ctx context.Context, method string, params any) error {
	return c.post(ctx, outgoing{Method: method, Params: params})
}

// feed takes a line of the agent, of which so many bytes are missing. It reports
// whether that was a message.
func (c *conn) feed(ctx context.Context, line []byte, cut int) bool {
	m := decode(line)
	switch m.kind {
	case notification:
		c.peer.notified(m.method, m.params)
	case request:
		if cut > 0 { // a file must not be written without its middle
			c.reply(ctx, m.id, nil, fmt.Errorf("the request is too long: %d bytes are more than uwf takes", len(line)+cut))
			break
		}
		result, err := c.peer.asked(m.method, m.params)
		c.reply(ctx, m.id, result, err)
	case response:
		c.answered(m)
	default:
		return false
	}
	return true
}

// answered hands an answer to whoever waits for it. One that nobody waits for, such
// as a second one with the same id, is dropped.
func (c *conn) answered(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := key(m.id)
	if m.id == nil && len(c.pending) == 1 {
		for id = range c.pending { // the agent could not read what was sent: this one
		}
	}
	if waiting, ok := c.pending[id]; ok {
		delete(c.pending, id)
		waiting <- m
	}
}

// reply sends an answer. That it cannot be sent means that the connection is
// over, which everyone sees who waits.
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
