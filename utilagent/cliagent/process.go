package cliagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Process is a running program with pipes. It always ends, by itself or through [Process.Stop], together with
// everything that it started.
type Process struct {
	child  *proc.Child
	stdin  *os.File
	stdout *output.Stream
	errors *output.Tail // tail of stderr
	marker string       // KEY=value in the environment of the program and its descendants

	kill    context.CancelFunc // kills the child
	after   func() error       // cleanup after the program has exited
	ended   chan struct{}
	status  proc.Status // valid, like err, once ended is closed
	err     error
	stopped sync.Once
	wasStop atomic.Bool
	done    sync.WaitGroup
}

// launch holds the parameters for starting a process.
type launch struct {
	path           string
	inv            Invocation
	env            []string
	marker         string
	confinement    *confinement // nil for none
	stdout, stderr io.Writer    // receive copies of the output
	more           string       // command that makes more files visible
	touch          func()       // called when stdout was read
}

// start starts a program. Stdin is written in the background, because the program may print before it reads,
// or never read.
func start(l launch) (*Process, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	cmd, done, err := l.confinement.wrap(proc.Command{
		Path: l.path, Args: l.inv.Args, Dir: l.inv.Dir, Env: append(l.env, l.marker),
		Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], WithParent: true,
	})
	var child *proc.Child
	if err == nil {
		if child, err = proc.Start(cmd); err != nil {
			err = errors.Join(l.notFound(err), done())
		}
	}
	theirs.close()
	if err != nil {
		ours.close()
		return nil, err
	}
	ctx, kill := context.WithCancel(context.Background())
	p := &Process{
		child: child, stdin: ours[0], errors: &output.Tail{}, marker: l.marker, kill: kill, after: done, ended: make(chan struct{}),
	}
	p.stdout = output.New(ours[1], l.stdout, l.touch)
	stderr := output.New(ours[2], io.MultiWriter(l.stderr, p.errors), nil)
	p.done.Add(2)
	go p.wait(ctx, p.stdout, stderr)
	go func() {
		defer p.done.Done()
		stderr.Each(l.inv.errLine)
	}()
	go p.write(l.inv)
	return p, nil
}

// notFound adds a hint for a program in namespaces that does not find itself or its interpreter.
func (l launch) notFound(err error) error {
	if l.confinement == nil || l.confinement.box == nil || errors.As(err, new(*proc.BoxError)) ||
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &Error{Program: filepath.Base(l.path), Kind: Crashed, Text: err.Error(), Hint: l.more}
}

// wait waits for the program to exit and then bounds how long its streams are read.
func (p *Process) wait(ctx context.Context, streams ...*output.Stream) {
	defer p.done.Done()
	// Stop sends the earlier signals, so no grace period is needed here.
	p.status, p.err = p.child.Wait(ctx, time.Millisecond)
	if errors.Is(p.err, context.Canceled) && !errors.Is(p.err, proc.ErrAlive) {
		p.err = nil // caused by Stop
	}
	p.kill()
	if p.status.Code != 0 {
		_, err := proc.KillMarked(p.marker)
		p.err = errors.Join(p.err, err)
	}
	p.err = errors.Join(p.err, p.after())
	close(p.ended)
	for _, s := range streams {
		s.WriterEnded()
	}
}

// write passes input to the program. A program that does not read it is not an error: many learn enough from
// their arguments, or fail first.
func (p *Process) write(inv Invocation) {
	_, err := io.WriteString(p.stdin, inv.Stdin)
	if err != nil || !inv.Open {
		_ = p.stdin.Close()
	}
}

// Stdin returns the program's input if [Invocation.Open] left it open. Closing it twice is harmless.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// ReadLine returns the next line of stdout, like [output.Stream.Line]. The output ends soon after the program exits,
// even if a child keeps the pipe open.
func (p *Process) ReadLine() (line []byte, err error) { return p.stdout.Line() }

// Ended returns a channel that is closed when the program has exited.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop interrupts the program, after pace asks it to terminate, and after another pace kills it. It returns
// when the program has exited and its remaining processes, in any process group, have been killed.
func (p *Process) Stop(pace time.Duration) {
	p.stopped.Do(func() {
		select {
		case <-p.ended:
			return
		default:
		}
		p.wasStop.Store(true)
		for _, s := range []os.Signal{os.Interrupt, terminate} {
			_ = p.child.Signal(s) // on failure, it is killed below
			select {
			case <-p.ended:
				return
			case <-time.After(pace):
			}
		}
		p.kill()
	})
	<-p.ended
}

// Wait waits until the program has exited and its stderr has been read.
func (p *Process) Wait() (Exit, error) {
	p.done.Wait()
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	err := p.err
	if p.wasStop.Load() {
		_, alive := proc.KillMarked(p.marker)
		err = errors.Join(err, alive)
	}
	return Exit{Code: p.status.Code, Signal: p.status.Signal, Stopped: p.wasStop.Load(), Stderr: p.errors.Text()}, err
}

// ends holds one end of each of the three pipes.
type ends [3]*os.File

// pipes creates the pipes for stdin, stdout and stderr.
func pipes() (ours, theirs ends, err error) {
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			ours.close()
			theirs.close()
			return ends{}, ends{}, err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	return ours, theirs, nil
}

func (e ends) close() {
	for _, f := range e {
		if f != nil {
			_ = f.Close() // nothing was written to it
		}
	}
}

// Host is the runner's interface for a [Transport], across all calls of a step.
type Host struct {
	launch func(Invocation) (launch, error)
	limits Timeouts
	held   *confinement    // nil if the program is not confined
	outer  context.Context // context of the step, cancelled when the agent is stopped
	mail   func() []agentkit.Message
	rand   io.Reader

	mu   sync.Mutex
	call *call
}

// Emit reports an event. An error means that the call must end: the store or stdout is broken, or the event
// itself is unacceptable (a session other than the requested one). The call's ctx is cancelled in that case.
func (h *Host) Emit(ctx context.Context, e Event) error {
	c := h.current(nil)
	if c == nil {
		return nil
	}
	return c.event(ctx, e)
}

// Start starts the program of a call with the step's environment, logs and watchdogs. The program may outlive
// the call.
func (h *Host) Start(inv Invocation) (*Process, error) {
	l, err := h.launch(inv)
	if err != nil {
		return nil, err
	}
	if c := h.current(nil); c != nil && inv.Silent {
		c.watch.silence()
	}
	l.touch = func() {
		if c := h.current(nil); c != nil {
			c.watch.line()
		}
	}
	return start(l)
}

// OffLimits returns the paths that a confined program must not touch.
func (h *Host) OffLimits() offlimits.List {
	if h.held == nil {
		return offlimits.List{}
	}
	return h.held.off
}

// Pace returns the time between the signals of [Process.Stop]. When the engine stops the agent, it kills it
// after five seconds.
func (h *Host) Pace() time.Duration {
	if h.outer.Err() != nil {
		return min(h.limits.Stop, 1500*time.Millisecond)
	}
	return h.limits.Stop
}

// current returns the running call and, if next is not nil, replaces it.
func (h *Host) current(next *call) *call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if next != nil {
		h.call = next
	}
	return h.call
}

// lines is the [Transport] for a program that takes a prompt and prints lines.
type lines struct{ adapter Adapter }

// Call implements [Transport].
func (l lines) Call(ctx context.Context, c Call, h *Host) (Outcome, error) {
	inv, err := l.adapter.Command(c)
	if err != nil {
		return Outcome{}, err
	}
	r := &lineReader{decoder: l.adapter.Decoder(c), host: h, noise: &output.Tail{}}
	if d, ok := r.decoder.(ErrLiner); ok {
		inv.errLine = func(line []byte) {
			r.take(ctx, func() ([]Event, bool) { return d.ErrLine(line), true }, nil)
		}
	}
	remove, err := writeFiles(inv.Files)
	defer remove()
	if err != nil {
		return Outcome{}, err
	}
	p, err := h.Start(inv)
	if err != nil {
		return Outcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.Stop(h.Pace()) })
	defer stop()
	if d, ok := r.decoder.(MessageReceiver); ok && inv.Open {
		r.post = newPost(d, h, p.Stdin())
		defer r.post.close()
	}
	r.read(ctx, p.ReadLine) // a shortened line is not JSON, and so unrecognized
	exit, err := p.Wait()
	exit.Noise = r.noise.Text()
	return r.decoder.End(exit), errors.Join(err, r.err)
}

// writeFiles writes the files of a call. It returns a function, never nil, that removes them.
func writeFiles(files []File) (remove func(), err error) {
	fsys := durable.OS()
	remove = func() {
		for _, f := range files {
			_ = fsys.Remove(f.Path) // it may be gone or never created
		}
	}
	for _, f := range files {
		if err := fsys.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return remove, err
		}
		if err := durable.Replace(fsys, f.Path, f.Data, 0o600); err != nil {
			return remove, err
		}
	}
	return remove, nil
}

// Close implements [Transport]. No program outlives its call.
func (lines) Close() error { return nil }

// lineReader reads the output of one call.
type lineReader struct {
	host  *Host
	noise *output.Tail
	post  *post // nil if the program cannot receive messages

	mu      sync.Mutex
	decoder Decoder
	err     error
}

// read reads to the end, even after the call has ended, because output before the program's exit belongs to
// the record.
func (r *lineReader) read(ctx context.Context, next func() ([]byte, error)) {
	for first := true; ; first = false {
		line, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.fail(err)
			}
			return
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		r.take(ctx, func() ([]Event, bool) { return r.decode(line) }, line)
	}
}

// decode decodes a line. A line that is not recognized as a whole may still contain objects: several of them,
// or one after a warning without a newline.
func (r *lineReader) decode(line []byte) (events []Event, known bool) {
	if events, known = r.decoder.Line(line); known {
		return events, true
	}
	at := bytes.IndexByte(line, '{')
	if at < 0 {
		return nil, false
	}
	values := json.NewDecoder(bytes.NewReader(line[at:]))
	for {
		var value json.RawMessage
		if values.Decode(&value) != nil || len(value) == len(line) {
			return events, false
		}
		more, _ := r.decoder.Line(value)
		events = append(events, more...)
	}
}

// take decodes a line and emits its events.
func (r *lineReader) take(ctx context.Context, decode func() ([]Event, bool), line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, known := decode()
	if !known && len(bytes.TrimSpace(line)) > 0 {
		_, _ = r.noise.Write(append(bytes.Clone(line[:min(len(line), output.TailBytes)]), '\n')) // never fails
	}
	for _, e := range events {
		if !r.post.sees(&e) {
			continue
		}
		if err := r.host.Emit(ctx, e); err != nil {
			return // the call's cause is the error
		}
	}
}

func (r *lineReader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

// The files in a run directory that contain the program's raw streams, for all calls of the step.
const (
	stdoutFile = "program.stdout"
	stderrFile = "program.stderr"
)

// maxLog bounds how much of a stream is kept.
const maxLog = 256 << 20

// logs holds the log files of one step.
type logs struct {
	stdout, stderr *logFile
}

// openLogs creates the log files in a run directory; "" keeps nothing.
func openLogs(dir string, secrets *secret.Set) (*logs, error) {
	l := &logs{stdout: &logFile{}, stderr: &logFile{}}
	if dir == "" {
		return l, nil
	}
	for name, into := range map[string]*logFile{stdoutFile: l.stdout, stderrFile: l.stderr} {
		path := filepath.Join(dir, name)
		_ = os.Remove(path) // opening it reports a failure
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("store the program's output: %w", err)
		}
		into.file, into.w = f, secrets.NewWriter(f)
	}
	return l, nil
}

func (l *logs) close() error { return errors.Join(l.stdout.close(), l.stderr.close()) }

// logFile logs one stream. The zero value discards. Safe for concurrent use.
type logFile struct {
	mu   sync.Mutex
	file io.Closer
	w    *secret.Writer // nil discards
	size int
}

func (f *logFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w == nil || f.size > maxLog {
		return len(b), nil
	}
	f.size += len(b)
	return f.w.Write(b)
}

func (f *logFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w == nil {
		return nil
	}
	err := errors.Join(f.w.Flush(), f.file.Close())
	f.w = nil
	return err
}
