// Package wire speaks to a remote at the end of a pipe, and is that end: a protocol of
// frames over stdin and stdout, described in docs/remote-protocol.md. Either side takes the
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

func connect(ctx context.Context, in io.Reader, out io.Writer, hangUp func() error, o Options,
	explain func(error) error) (*Client, error) {
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
			Message: fmt.Sprintf("the remote speaks version %d of the protocol, and this uwf knows version %d", a.Version,
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

// Helper is the program that speaks to a remote.
type Helper struct {
	Address remote.Address
	Environ []string
	Dir     string // absolute working directory; no helper is found in the work around it
	Exe     string // our own program: the helper may lie beside it; "": not known
}

// NoHelperError means that there is no program for an address.
type NoHelperError struct {
	Program string
	Err     error
}

// Error implements error.
func (e *NoHelperError) Error() string {
	return fmt.Sprintf("%s, which speaks to such a remote, cannot be started: %v", e.Program, e.Err)
}

// Unwrap returns the cause.
func (e *NoHelperError) Unwrap() error { return e.Err }

// HelperError means that a helper has ended early.
type HelperError struct {
	Program string
	Status  string // how it ended, in words
	Said    string // the end of its stderr, on one line; "": nothing
	Err     error
}

// Error implements error.
func (e *HelperError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s ended (%s) and said nothing", e.Program, e.Status)
	}
	return fmt.Sprintf("%s ended (%s): %s", e.Program, e.Status, e.Said)
}

// Unwrap returns the cause.
func (e *HelperError) Unwrap() error { return e.Err }

// grace is how long a helper may take to end when its streams have.
const grace = 2 * time.Second

// Dial starts the helper of an address and connects to it. It stays in our process
// group: ssh may ask for a password at the terminal. Errors: [*NoHelperError],
// [*HelperError]; those of [Connect].
func Dial(ctx context.Context, h Helper, o Options) (*Client, error) {
	path, err := h.find()
	if err != nil {
		return nil, &NoHelperError{Program: h.Address.Program(), Err: err}
	}
	cmd := exec.Command(path, h.Address.Text)
	cmd.Env, cmd.Dir, cmd.WaitDelay = h.Environ, h.Dir, grace
	said := &tail{}
	cmd.Stderr = said
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
	p := &process{cmd: cmd, name: h.Address.Program(), said: said, in: in, out: out, ended: make(chan struct{})}
	return connect(ctx, out, in, p.hangUp, o, p.explain)
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

// process is a helper that runs.
type process struct {
	cmd   *exec.Cmd
	name  string
	said  *tail
	in    io.Closer
	out   io.Closer
	once  sync.Once
	ended chan struct{}
	err   error // of Wait
}

// wait sees the end of the helper, which is killed if it does not come.
func (p *process) wait() {
	p.once.Do(func() {
		late := time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() })
		p.err = p.cmd.Wait()
		late.Stop()
		close(p.ended)
	})
	<-p.ended
}

func (p *process) hangUp() error {
	_, _ = p.in.Close(), p.out.Close() // it may have ended
	p.wait()
	return nil
}

// explain says what a helper has said when it ended.
func (p *process) explain(err error) error {
	_ = p.hangUp()
	status := "status 0"
	if p.err != nil {
		status = p.err.Error()
	}
	return &HelperError{Program: p.name, Status: status, Said: p.said.line(), Err: err}
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 2 << 10

// Write implements [io.Writer].
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, data[max(0, len(data)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(data), nil
}

// line is all of it, fit for a terminal.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(t.text), ""), func(r rune) bool {
		return r == '\n' ||
			r == '\r'
	})
	return plaintext.Line(strings.Join(lines, "; "))
}

// lost ends the connection because the other side cannot be heard or reached any more.
// Whoever has started it may know why.
func (c *Client) lost(err error) error {
	var wrong *remote.FaultError
	err = cut(err)
	if c.explain != nil && !errors.As(err, &wrong) && c.why(nil) == nil {
		err = c.explain(err)
	}
	return c.broken(err)
}

// Connect speaks to the other end. hangUp ends the connection: reads and writes that wait
// must end by it. Errors: [*remote.FaultError], [*SilentError], [*remote.HashError], a
// [*protocol.Error] with [protocol.CodeUnsupportedVersion], and what the other side says.
func Connect(ctx context.Context, in io.Reader, out io.Writer, hangUp func() error, o Options) (*Client, error) {
	return connect(ctx, in, out, hangUp, o, nil)
}

// silence notices that no byte moves any more: one timer reports that, the other ends the connection.
type silence struct {
	o           Options
	report, end *time.Timer
}

func watchSilence(o Options, end func()) *silence {
	report := func() {}
	if o.Stalled != nil {
		report = sync.OnceFunc(o.Stalled)
	}
	return &silence{o, time.AfterFunc(o.Notice, report), time.AfterFunc(o.Silence, end)}
}

// Reset records that a byte has moved, or that the wait for one begins.
func (s *silence) Reset() {
	s.report.Reset(s.o.Notice)
	s.end.Reset(s.o.Silence)
}

// Stop ends the wait.
func (s *silence) Stop() {
	s.report.Stop()
	s.end.Stop()
}

// movingReader and movingWriter call moved for what passes, so that a slow line is not taken for a
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

// piece bounds one write: a pipe takes it whole, and a line on which it takes longer
// than [Silence] is dead.
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
