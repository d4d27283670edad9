package cli

import (
	"cmp"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// paged lists the commands with potentially long output for reading.
func paged() []string {
	return []string{
		"thread list", "thread show", "thread steps", "thread read", "thread step-details", "thread diff", "thread graph",
		"step list", "step show", "step read", "step turns", "workflow show", "workflow diff", "workflow list",
		"log show", "log list",
	}
}

// withPager makes those commands use a pager for output taller than the terminal. Growing output (--live,
// --follow) is not paged.
func (a commands) withPager(commands []*ucli.Command, path string) {
	for _, c := range commands {
		at := strings.TrimSpace(path + " " + c.Name)
		a.withPager(c.Subcommands, at)
		if !slices.Contains(paged(), at) {
			continue
		}
		action := c.Action
		c.Action = func(cc *ucli.Context) error {
			if cc.Bool("live") || cc.Bool("follow") {
				return action(cc)
			}
			done := a.page()
			return errors.Join(action(cc), done())
		}
	}
}

// page inserts a pager before the terminal: UWF_PAGER, or else PAGER, or else less. Empty variables count as
// unset; "cat" and missing programs mean no pager. done flushes the output and waits for the pager.
func (a commands) page() (done func() error) {
	screen, ok := a.Env.Stdout.(*terminal.Writer)
	_, height := terminal.Size(a.Env.Stdout)
	words := strings.Fields(cmp.Or(a.Env.Get("UWF_PAGER"), a.Env.Get("PAGER"), "less"))
	if !ok || height == 0 || len(words) == 0 || words[0] == "cat" || a.Env.Get("TERM") == "dumb" {
		return func() error { return nil }
	}
	program, err := proc.LookPath(words[0], a.Env.Dir, a.Env.Environ)
	if err != nil {
		return func() error { return nil }
	}
	p := &pager{out: terminal.ForChild(screen), height: height, cmd: exec.Command(program, words[1:]...)}
	p.cmd.Env = a.Env.With("LESS", cmp.Or(a.Env.Get("LESS"), "FRX")).Environ
	p.cmd.Stdout, p.cmd.Stderr = p.out, terminal.ForChild(a.Env.Stderr)
	a.Env.Stdout = screen.Through(p)
	return func() error {
		a.Env.Stdout = screen
		return p.close()
	}
}

// pager buffers output until it is taller than the screen and then starts a program. If that fails, the text
// goes to the terminal. Either way the text has been sanitized: less interprets escape sequences as well.
type pager struct {
	out    io.Writer // the terminal
	height int
	cmd    *exec.Cmd

	held  []byte
	lines int
	tried bool           // starting the program
	pipe  io.WriteCloser // the program's stdin, or nil if it does not run
}

// Write implements io.Writer.
func (p *pager) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	p.lines += strings.Count(string(b), "\n")
	if p.lines < p.height {
		return len(b), nil
	}
	if !p.tried {
		p.tried = true
		if pipe, err := p.cmd.StdinPipe(); err == nil && p.cmd.Start() == nil {
			p.pipe = pipe
		}
	}
	return len(b), p.flush()
}

// flush writes the buffered output. A pager closed early is not an error.
func (p *pager) flush() (err error) {
	if p.pipe != nil {
		_, _ = p.pipe.Write(p.held)
	} else {
		_, err = p.out.Write(p.held)
	}
	p.held = p.held[:0]
	return err
}

func (p *pager) close() error {
	if p.pipe == nil {
		return p.flush()
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // the pager's exit status is irrelevant
	return nil
}
