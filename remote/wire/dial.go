package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

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
	lines := strings.FieldsFunc(strings.ToValidUTF8(string(t.text), ""), func(r rune) bool { return r == '\n' || r == '\r' })
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
