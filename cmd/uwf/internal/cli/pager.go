package cli

import (
	"cmp"
	"errors"
	"io"
	"os/exec"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/terminal"
)

// paged are the commands whose output can be long, and is for reading.
func paged() map[string]bool {
	paths := []string{
		"thread list", "thread show", "thread steps", "thread read", "thread step-details", "thread diff", "thread graph",
		"step list", "step show", "step read", "step turns", "workflow show", "workflow diff", "workflow list",
		"log show", "log list",
	}
	set := map[string]bool{}
	for _, p := range paths {
		set["uwf "+p] = true
	}
	return set
}

// withPager lets those commands write into a pager, if what they print is taller
// than the terminal. What is still growing (--live, --follow) is not paged.
func (a commands) withPager(commands []*ucli.Command, path string) {
	set := paged()
	for _, c := range commands {
		at := path + " " + c.Name
		a.withPager(c.Subcommands, at)
		if !set[at] || c.Action == nil {
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

// page puts a pager between the command and the terminal. done shows what is
// left, and waits until the reader has seen enough.
func (a commands) page() (done func() error) {
	screen, ok := a.Env.Stdout.(*terminal.Writer)
	_, height := terminal.Size(a.Env.Stdout)
	command := pagerCommand(a.Env)
	if !ok || height == 0 || len(command) == 0 {
		return func() error { return nil }
	}
	p := &pager{out: terminal.ForChild(screen), height: height, command: command, env: a.Env}
	a.Env.Stdout = screen.Through(p)
	return func() error {
		a.Env.Stdout = screen
		return p.close()
	}
}

// pagerCommand is what the environment asks for: UWF_PAGER, then PAGER, then
// less. An empty UWF_PAGER counts as unset; "cat" is no pager.
func pagerCommand(e env.Env) []string {
	named := e.Get("UWF_PAGER")
	if named == "" {
		named = e.Get("PAGER")
	}
	if named == "" {
		named = "less"
	}
	words := strings.Fields(named)
	if len(words) == 0 || words[0] == "cat" || e.Get("TERM") == "dumb" {
		return nil
	}
	return words
}

// pager holds back what is printed until it is taller than the screen, and then
// starts a program to show it. If that cannot be started, the text goes to the
// terminal as it is. Either way it has been cleaned: less obeys colours, too.
type pager struct {
	out     io.Writer
	height  int
	command []string
	env     env.Env

	held  []byte
	lines int
	cmd   *exec.Cmd
	pipe  io.WriteCloser
	plain bool // there is no pager
}

// Write implements io.Writer. A reader who has seen enough is no error.
func (p *pager) Write(b []byte) (int, error) {
	switch {
	case p.plain:
		return p.out.Write(b)
	case p.pipe != nil:
		_, _ = p.pipe.Write(b) // the reader may have left
		return len(b), nil
	}
	p.held = append(p.held, b...)
	p.lines += strings.Count(string(b), "\n")
	if p.lines < p.height {
		return len(b), nil
	}
	return len(b), p.start()
}

// start starts the program and gives it what was held back.
func (p *pager) start() error {
	program, err := proc.LookPath(p.command[0], p.env.Dir, p.env.Environ)
	if err != nil {
		p.plain = true
		return p.flush(p.out)
	}
	cmd := exec.Command(program, p.command[1:]...)
	cmd.Env = p.env.With("LESS", cmp.Or(p.env.Get("LESS"), "FRX")).Environ
	cmd.Stdout, cmd.Stderr = p.out, terminal.ForChild(p.env.Stderr)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.plain = true
		return p.flush(p.out)
	}
	p.cmd, p.pipe = cmd, pipe
	_ = p.flush(pipe) // the reader may have left
	return nil
}

func (p *pager) flush(w io.Writer) error {
	_, err := w.Write(p.held)
	p.held = nil
	return err
}

func (p *pager) close() error {
	if p.pipe == nil {
		return p.flush(p.out)
	}
	_ = p.pipe.Close()
	_ = p.cmd.Wait() // how a pager ends says nothing about the command
	return nil
}
