package cli

import (
	"cmp"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// paged are the commands whose output can be long, and is for reading.
func paged() []string {
	return []string{
		"thread list", "thread show", "thread steps", "thread read", "thread step-details", "thread diff", "thread graph",
		"step list", "step show", "step read", "step turns", "workflow show", "workflow diff", "workflow list",
		"log show", "log list",
	}
}

// withPager lets those commands write into a pager, if what they print is taller
// than the terminal. What is still growing (--live, --follow) is not paged.
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

// page puts a pager between the command and the terminal: UWF_PAGER, then PAGER, then
// less. An empty variable counts as unset; "cat" is no pager, nor is what cannot be
// found. done shows what is left, and waits until the reader has seen enough.
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

// pager holds back what is printed until it is taller than the screen, and then
// starts a program to show it. If that cannot be started, the text goes to the
// terminal as it is. Either way it has been cleaned: less obeys colours, too.
type pager struct {
	out    io.Writer // the terminal
	height int
	cmd    *exec.Cmd

	held  []byte
	lines int
	tried bool           // to start it
	pipe  io.WriteCloser // to the program, nil if it does not run
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

// flush writes what was held back. A reader who has seen enough is no error.
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
	_ = p.cmd.Wait() // how a pager ends says nothing about the command
	return nil
}
