// Package wire speaks to a remote at the end of a pipe, and is that end: a protocol of
// frames over stdin and stdout, described in docs/remotes.md. Either side takes the
// other for a stranger: whatever it says has a bound, in bytes and in time, and what it
// says wrong ends the connection.
package wire

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Options of a client. Hash is required.
type Options struct {
	Hash    cas.Algorithm // of the store on this side
	Program string        // what the other side is told of this one, for people
	// Silence bounds the time without a byte when it is the other side's turn; 0: one minute.
	// Patience bounds the time with heartbeats only; 0: ten minutes.
	Silence, Patience time.Duration
	// Stalled is called once if no byte moves for Notice, 0: five seconds. It may be nil.
	Stalled func()
	Notice  time.Duration
	// MaxList bounds all entries of a list together, in bytes; 0: [MaxList].
	MaxList int64
}

const (
	// patience bounds how long a remote may work on an answer.
	patience = 10 * time.Minute
	// notice bounds how long a person waits without a word.
	notice = 5 * time.Second
)

// BusyError means that the other side has said for so long that it is at work, and
// nothing else.
type BusyError struct{ For time.Duration }

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the other side has been at work for %s without an answer", protocol.Span(e.For))
}

// SilentError means that the other side has neither sent nor taken a byte for so long.
type SilentError struct{ For time.Duration }

// Error implements error.
func (e *SilentError) Error() string {
	return fmt.Sprintf("the other side has not moved a byte for %s", protocol.Span(e.For))
}

// Client is a [remote.Remote] at the end of a pipe. What it returns has been checked as
// far as it can be told from the question: nodes have the hashes that were asked for,
// lists are in order. When a context ends in the middle of a call, or the other side
// breaks the protocol, the connection has ended with it.
type Client struct {
	options Options
	hash    cas.Algorithm
	in      *reader
	out     *bufio.Writer
	turn    chan struct{} // had by whoever speaks
	watch   *silence
	working *time.Timer // of patience
	hangUp  func() error
	explain func(error) error // why the other side has gone; nil: nobody knows

	mu    sync.Mutex
	ended error // why the connection has ended
}

var _ remote.Remote = (*Client)(nil)

func connect(ctx context.Context, in io.Reader, out io.Writer, hangUp func() error, o Options, explain func(error) error) (*Client, error) {
	o.Silence, o.Patience = cmp.Or(o.Silence, Silence), cmp.Or(o.Patience, patience)
	o.MaxList = cmp.Or(o.MaxList, MaxList)
	o.Notice = cmp.Or(o.Notice, notice)
	c := &Client{options: o, explain: explain, turn: make(chan struct{}, 1)}
	c.hangUp = sync.OnceValue(hangUp)
	c.watch = watchSilence(o, func() { c.fail(&SilentError{o.Silence}) })
	c.working = time.AfterFunc(o.Patience, func() { c.fail(&BusyError{o.Patience}) })
	works := func() { c.working.Reset(o.Patience) }
	c.in = newReader(in, c.watch.Reset, works)
	c.out = bufio.NewWriterSize(movingWriter{out, func() { c.watch.Reset(); works() }}, 1<<16)
	_, err := c.out.WriteString(Magic)
	if err == nil {
		err = c.greet(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.watch.Stop() // until somebody asks
	c.working.Stop()
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })()
	if err := writeJSON(c.out, request, ask{Verb: hello, Versions: []int{Version}, Program: c.options.Program, Hash: c.options.Hash}); err != nil {
		return err
	}
	err := cmp.Or(write(c.out, end, []byte("{}")), c.out.Flush())
	if began := c.in.begin(); began != nil {
		return c.lost(cmp.Or(began, err))
	}
	a, err := c.listen(hello, "", nil)
	if err != nil {
		return err
	}
	if a.Version != Version || a.Info == nil {
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: fmt.Sprintf("the remote speaks version %d of the protocol, and this uwf knows version %d", a.Version, Version)}
	}
	if !a.Info.Hash.Known() {
		return c.broken(remote.Faultf("%q is not a hash function", a.Info.Hash))
	}
	if c.hash = a.Info.Hash; c.hash != c.options.Hash {
		return &remote.HashError{Remote: c.hash, Here: c.options.Hash}
	}
	return nil
}

// fail ends the connection for a reason.
func (c *Client) fail(err error) {
	c.mu.Lock()
	c.ended = cmp.Or(c.ended, err)
	c.mu.Unlock()
	_ = c.hangUp() // the reason is told instead
}

// why is the reason for which the connection has ended, if there is one that is known.
func (c *Client) why(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.ended, err)
}

// broken ends the connection because of what the other side has said.
func (c *Client) broken(err error) error {
	err = c.why(err)
	c.fail(err)
	return err
}

// Close implements [remote.Remote].
func (c *Client) Close() error {
	c.watch.Stop()
	c.working.Stop()
	c.mu.Lock()
	c.ended = cmp.Or(c.ended, errClosed)
	c.mu.Unlock()
	return c.hangUp()
}

var errClosed = errors.New("the connection to the remote is closed")

// errLeft: nobody wants the rest of a list.
var errLeft = errors.New("left")

// call asks, with what send writes, and hands the messages of an answer to each.
func (c *Client) call(ctx context.Context, a ask, send func(out *bufio.Writer) error, kinds string, each func(kind byte, message []byte) error) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	if err := c.why(nil); err != nil {
		return answer{}, err
	}
	defer context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })()
	c.watch.Reset()
	c.working.Reset(c.options.Patience)
	defer c.working.Stop()
	defer c.watch.Stop()
	if err := c.ask(a, send); err != nil {
		if _, ok := errors.AsType[*remote.FaultError](err); ok {
			return answer{}, c.broken(err)
		}
		return c.listen(a.Verb, kinds, each) // it may have hung up after a last word
	}
	return c.listen(a.Verb, kinds, each)
}

func (c *Client) ask(a ask, send func(out *bufio.Writer) error) error {
	if err := writeJSON(c.out, request, a); err != nil {
		return err
	}
	if send != nil {
		if err := send(c.out); err != nil {
			return err
		}
	}
	if err := write(c.out, end, []byte("{}")); err != nil {
		return err
	}
	return c.out.Flush()
}

// listen reads an answer to its end, also if nobody wants the rest of it.
func (c *Client) listen(verb, kinds string, each func(kind byte, message []byte) error) (a answer, err error) {
	var left error
	size := int64(0)
	for {
		kind, message, err := c.in.next(kinds + string(end))
		if err != nil {
			return a, c.lost(err)
		}
		c.working.Reset(c.options.Patience)
		if kind == end {
			if err := readJSON("the answer to "+verb, message, &a); err != nil {
				return a, c.broken(err)
			}
			if a.Error != nil {
				return a, cmp.Or(left, a.Error.err())
			}
			return a, left
		}
		if kind == value {
			if size += int64(len(message)); size > c.options.MaxList {
				return a, c.broken(&remote.LimitError{Most: c.options.MaxList, Of: "bytes"})
			}
		}
		c.watch.Stop() // it is the caller's turn, for as long as it likes
		c.working.Stop()
		err = each(kind, message)
		c.watch.Reset()
		c.working.Reset(c.options.Patience)
		switch {
		case errors.Is(err, errLeft):
			left, each = err, func(byte, []byte) error { return nil }
		case err != nil:
			return a, c.broken(err)
		}
	}
}

// list is what a call yields, in the caller's order. Each error is the last.
func list[T any](call func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := false
		err := call(func(v T) error {
			if left = !yield(v, nil); left {
				return errLeft
			}
			return nil
		})
		if err != nil && !left { // of what nobody listens to any more the next call tells
			var none T
			yield(none, err)
		}
	}
}
