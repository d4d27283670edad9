// Package wire implements the client and the server of the remote protocol: frames over stdin and stdout,
// described in docs/remote-protocol.md. Neither side trusts the other: messages are limited in size and time,
// and an invalid one closes the connection.
package wire

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// Options are the options of a client. Hash is required.
type Options struct {
	Hash    cas.Algorithm // hash function of the local store
	Program string        // name of this program, shown at the other side
	// Silence is the maximum time without data when it is the other side's turn; 0 means one minute. Patience
	// is the maximum time with heartbeats only; 0 means ten minutes.
	Silence, Patience time.Duration
	// Stalled, if not nil, is called once if no data moves for Notice; 0 means five seconds.
	Stalled func()
	Notice  time.Duration
	// MaxList is the maximum total size of a list's entries in bytes; 0 means [MaxList].
	MaxList int64

	explain func(error) error // returns why the other side has ended; nil if unknown
}

const (
	// patience is the default time that a remote may work on an answer.
	patience = 10 * time.Minute
	// notice is the default time before the user is informed about a slow remote.
	notice = 5 * time.Second
)

// TimeoutError means that the other side has neither sent nor received data for too long or, if it is busy, has sent
// nothing but heartbeats.
type TimeoutError struct {
	For  time.Duration
	Busy bool
}

func (e *TimeoutError) Error() string {
	if e.Busy {
		return fmt.Sprintf("no answer for %s", protocol.Span(e.For))
	}
	return fmt.Sprintf("no data for %s", protocol.Span(e.For))
}

// Client is a [remote.Remote] at the end of a pipe. It checks what can be checked in responses: nodes
// have the requested hashes, and lists are sorted. If a context ends during a call, or the other side
// violates the protocol, the connection is closed.
type Client struct {
	options Options
	hash    cas.Algorithm
	in      *reader
	out     *bufio.Writer
	turn    chan struct{} // held by the current caller
	watch   *watch
	hangUp  func() error

	mu    sync.Mutex
	ended error // why the connection was closed
}

var _ remote.Remote = (*Client)(nil)

// Connect connects to a server over streams. hangUp must close the connection so that pending reads and
// writes return. Errors are [*remote.FaultError], [*TimeoutError], [*remote.HashError], a [*protocol.Error]
// with [protocol.CodeUnsupportedVersion], and errors reported by the other side.
func Connect(ctx context.Context, in io.Reader, out io.Writer, hangUp func() error, o Options) (*Client, error) {
	o.Silence, o.Patience = cmp.Or(o.Silence, Silence), cmp.Or(o.Patience, patience)
	o.MaxList = cmp.Or(o.MaxList, MaxList)
	o.Notice = cmp.Or(o.Notice, notice)
	c := &Client{options: o, turn: make(chan struct{}, 1)}
	c.hangUp = sync.OnceValue(hangUp)
	c.watch = c.newWatch(o)
	c.in = newReader(in, c.watch.moved, c.watch.useful)
	c.out = bufio.NewWriterSize(movingWriter{out, c.watch.useful}, 1<<16)
	_, err := c.out.WriteString(Magic)
	if err == nil {
		err = c.greet(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.watch.stop() // until the next call
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })()
	if err := writeJSON(c.out, request, ask{Verb: hello, Versions: []int{Version}, Program: c.options.Program,
		Hash: c.options.Hash}); err != nil {
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
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: fmt.Sprintf("the remote uses protocol version %d, but this uwf supports version %d", a.Version,
				Version)}
	}
	if !a.Info.Hash.Known() {
		return c.broken(remote.Faultf("%q is not a hash function", a.Info.Hash))
	}
	if c.hash = a.Info.Hash; c.hash != c.options.Hash {
		return &remote.HashError{Remote: c.hash, Here: c.options.Hash}
	}
	return nil
}

// fail closes the connection with an error.
func (c *Client) fail(err error) {
	c.mu.Lock()
	c.ended = cmp.Or(c.ended, err)
	c.mu.Unlock()
	_ = c.hangUp() // err is more useful
}

// cause returns the reason why the connection was closed if it is known, else err.
func (c *Client) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.ended, err)
}

// broken closes the connection because of an invalid message.
func (c *Client) broken(err error) error {
	err = c.cause(err)
	c.fail(err)
	return err
}

// Close implements [remote.Remote].
func (c *Client) Close() error {
	c.watch.stop()
	c.mu.Lock()
	c.ended = cmp.Or(c.ended, errClosed)
	c.mu.Unlock()
	return c.hangUp()
}

var errClosed = errors.New("the connection to the remote is closed")

// errLeft means that the caller has stopped iterating over a list.
var errLeft = errors.New("left")

// call sends a request, with the content written by send, and passes the messages of the response to each.
func (c *Client) call(ctx context.Context, a ask, send func(out *bufio.Writer) error, kinds string,
	each func(kind byte, message []byte) error) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	if err := c.cause(nil); err != nil {
		return answer{}, err
	}
	defer context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })()
	c.watch.useful()
	defer c.watch.stop()
	if err := c.ask(a, send); err != nil {
		if _, ok := errors.AsType[*remote.FaultError](err); ok {
			return answer{}, c.broken(err)
		}
		return c.listen(a.Verb, kinds, each) // it may have sent a final message before it hung up
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

// listen reads a response to its end, even if the caller has stopped iterating.
func (c *Client) listen(verb, kinds string, each func(kind byte, message []byte) error) (a answer, err error) {
	var left error
	size := int64(0)
	for {
		kind, message, err := c.in.next(kinds + string(end))
		if err != nil {
			return a, c.lost(err)
		}
		c.watch.useful()
		if kind == end {
			if err := readJSON("the answer to "+verb, message, &a); err != nil {
				return a, c.broken(err)
			}
			if a.Error != nil {
				return a, cmp.Or(left, a.Error.error())
			}
			return a, left
		}
		if kind == value {
			if size += int64(len(message)); size > c.options.MaxList {
				return a, c.broken(&remote.LimitError{Most: c.options.MaxList, Of: "bytes"})
			}
		}
		c.watch.stop() // the caller can take as long as it wants
		err = each(kind, message)
		c.watch.useful()
		switch {
		case errors.Is(err, errLeft):
			left, each = err, func(byte, []byte) error { return nil }
		case err != nil:
			return a, c.broken(err)
		}
	}
}

// sequence converts a call to a sequence, in the caller's goroutine. An error ends the sequence.
func sequence[T any](call func(yield func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := false
		err := call(func(v T) error {
			if left = !yield(v, nil); left {
				return errLeft
			}
			return nil
		})
		if err != nil && !left { // after an early end, the next call reports the error
			var none T
			yield(none, err)
		}
	}
}

// Helper describes the helper program of a remote.
type Helper struct {
	Address remote.Address
	Environ []string
	Dir     string // absolute working directory; helpers inside the surrounding project are not used
	Exe     string // path of this program, next to which the helper may be; "" if unknown
}

// NoHelperError means that the helper program for an address is missing.
type NoHelperError struct {
	Program string
	Err     error
}

func (e *NoHelperError) Error() string {
	return fmt.Sprintf("cannot start %s, the program for such remotes: %v", e.Program, e.Err)
}

func (e *NoHelperError) Unwrap() error { return e.Err }

// HelperError means that a helper has ended unexpectedly.
type HelperError struct {
	Program string
	Status  string // description of how it ended
	Stderr  string // end of its stderr on one line; "" if empty
	Err     error
}

func (e *HelperError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s exited (%s) without an error message", e.Program, e.Status)
	}
	return fmt.Sprintf("%s exited (%s): %s", e.Program, e.Status, e.Stderr)
}

func (e *HelperError) Unwrap() error { return e.Err }

// grace is the time that a helper has to end after its streams are closed.
const grace = 2 * time.Second

// Dial starts the helper for an address and connects to it. The helper stays in our process group, because
// ssh may ask for a password on the terminal. Errors are [*NoHelperError], [*HelperError], and errors of
// [Connect].
func Dial(ctx context.Context, h Helper, o Options) (*Client, error) {
	path, err := h.find()
	if err != nil {
		return nil, &NoHelperError{Program: h.Address.Program(), Err: err}
	}
	cmd := exec.Command(path, h.Address.Text)
	cmd.Env, cmd.Dir, cmd.WaitDelay = h.Environ, h.Dir, grace
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, &NoHelperError{Program: h.Address.Program(), Err: err}
	}
	hangUp := sync.OnceValue(func() error {
		_, _ = in.Close(), out.Close() // the streams may be closed already
		late := time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	})
	o.explain = func(err error) error {
		status := "status 0"
		if ended := hangUp(); ended != nil {
			status = ended.Error()
		}
		return &HelperError{Program: h.Address.Program(), Status: status, Stderr: stderr.line(), Err: err}
	}
	return Connect(ctx, out, in, func() error { _ = hangUp(); return nil }, o)
}

func (h Helper) find() (string, error) {
	path, err := proc.LookPath(h.Address.Program(), h.Dir, h.Environ)
	if err == nil || h.Exe == "" {
		return path, err
	}
	beside, found := exec.LookPath(filepath.Join(filepath.Dir(h.Exe), h.Address.Program()))
	if found != nil {
		return "", err
	}
	return beside, nil
}

// tail is a writer that keeps the end of the data.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2 << 10

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data[max(0, len(data)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(data), nil
}

// line returns the kept data as one line, cleaned for a terminal.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	isBreak := func(r rune) bool { return r == '\n' || r == '\r' }
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(t.text), ""), isBreak)
	return plaintext.Line(strings.Join(lines, "; "))
}

// lost closes the connection because it is broken. If the client has started the other side, it may know the
// reason.
func (c *Client) lost(err error) error {
	var wrong *remote.FaultError
	err = cut(err)
	if c.options.explain != nil && !errors.As(err, &wrong) && c.cause(nil) == nil {
		err = c.options.explain(err)
	}
	return c.broken(err)
}

// watch detects that no data moves, or only heartbeats. Its timers report the first and close the connection.
type watch struct {
	o                    Options
	report, silent, busy *time.Timer
}

func (c *Client) newWatch(o Options) *watch {
	report := func() {}
	if o.Stalled != nil {
		report = sync.OnceFunc(o.Stalled)
	}
	return &watch{o, time.AfterFunc(o.Notice, report),
		time.AfterFunc(o.Silence, func() { c.fail(&TimeoutError{For: o.Silence}) }),
		time.AfterFunc(o.Patience, func() { c.fail(&TimeoutError{o.Patience, true}) })}
}

// moved records that data has moved.
func (w *watch) moved() {
	w.report.Reset(w.o.Notice)
	w.silent.Reset(w.o.Silence)
}

// useful records that more than a heartbeat has moved, or that a wait starts.
func (w *watch) useful() {
	w.moved()
	w.busy.Reset(w.o.Patience)
}

// stop stops the timers.
func (w *watch) stop() {
	w.report.Stop()
	w.silent.Stop()
	w.busy.Stop()
}

// movingReader and movingWriter call moved when data passes, so that a slow connection isn't mistaken for a
// dead one.
type movingReader struct {
	io.Reader
	moved func()
}

func (r movingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.moved()
	}
	return n, err
}

type movingWriter struct {
	io.Writer
	moved func()
}

// piece is the maximum size of one write. It fits into a pipe, and a connection that needs longer than
// [Silence] for it is dead.
const piece = 4 << 10

func (w movingWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = w.Writer.Write(p[written:min(len(p), written+piece)])
		written += n
		w.moved()
	}
	return written, err
}
