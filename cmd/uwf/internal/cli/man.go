package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/suggest"
)

func (a commands) manCommand(root *ucli.App) *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "man", Usage: "print the manual page, of all commands or of one", ArgsUsage: "[command…]",
		Description: "The page is for man(1): uwf man | man -l -\n" +
			"Install it for all: uwf man > /usr/local/share/man/man1/uwf.1",
	}, func(_ context.Context, c *ucli.Context) error {
		t, err := below(root, c.Args().Slice())
		if err != nil {
			return err
		}
		m := manual{w: a.Env.Stdout}
		m.page(root, t)
		return m.err
	})
}

// topic is what a page is about.
type topic struct {
	path, usage string
	parent      string // path of what holds the commands
	commands    []*ucli.Command
}

// below finds a command by its words; no words are the program itself.
func below(root *ucli.App, words []string) (topic, error) {
	t := topic{path: "uwf", usage: root.Usage, parent: "uwf", commands: root.Commands}
	for i, word := range words {
		at := slices.IndexFunc(t.commands, func(c *ucli.Command) bool { return c.HasName(word) })
		if at < 0 || len(t.commands) == 1 && i > 0 && t.parent != t.path {
			return t, noSuchTopic(t, words[:i+1])
		}
		c := t.commands[at]
		t.parent, t.path, t.usage, t.commands = t.path, t.path+" "+c.Name, c.Usage, []*ucli.Command{c}
		if len(c.Subcommands) > 0 {
			t.parent, t.commands = t.path, c.Subcommands
		}
	}
	return t, nil
}

// noSuchTopic is the error for words of which the last names nothing in t.
func noSuchTopic(t topic, words []string) error {
	var names []string
	if t.parent == t.path { // otherwise it is a command, which has none below it
		for _, c := range t.commands {
			names = append(names, c.Name)
		}
	}
	hints := []string{t.path + " --help"}
	if near := suggest.Nearest(words[len(words)-1], names, 1); len(near) > 0 {
		hints = append([]string{"did you mean " + t.path + " " + near[0] + "?"}, hints...)
	}
	return cmdline.UsageError(fmt.Sprintf("there is no command %q", strings.Join(words, " ")), hints...)
}

// manual writes troff with the macros of man(7).
type manual struct {
	w   io.Writer
	err error
}

func (m *manual) line(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format+"\n", args...)
	}
}

func (m *manual) page(root *ucli.App, t topic) {
	m.line(`.TH "%s" 1`, strings.ToUpper(strings.ReplaceAll(t.path, " ", "-")))
	m.line(".SH NAME\n%s \\- %s", troff(strings.ReplaceAll(t.path, " ", "-")), troff(t.usage))
	if one := t.commands[0]; t.parent != t.path {
		m.line(".SH SYNOPSIS\n.B %s\n%s", troff(t.path), troff(strings.TrimSpace(one.ArgsUsage+" [flags]")))
	} else {
		m.line(".SH SYNOPSIS\n.B %s\n[global flags] command [flags] [arguments]", troff(t.path))
	}
	m.line(".SH GLOBAL FLAGS")
	m.flags(root.Flags)
	m.line(".SH COMMANDS")
	m.commands(t.parent, t.commands)
	m.line(".SH EXIT STATUS")
	for _, s := range exitStatuses() {
		m.line(".TP\n.B %d\n%s", s.code, troff(s.meaning))
	}
}

func (m *manual) commands(path string, commands []*ucli.Command) {
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		at := path + " " + c.Name
		if len(c.Subcommands) > 0 {
			m.commands(at, c.Subcommands)
			continue
		}
		m.line(".SS %s", troff(strings.TrimSpace(at+" "+c.ArgsUsage)))
		m.line("%s.", troff(c.Usage))
		if c.Description != "" {
			m.line(".PP\n.nf\n%s\n.fi", troff(c.Description))
		}
		m.flags(c.Flags)
	}
}

func (m *manual) flags(flags []ucli.Flag) {
	for _, f := range flags {
		shown, visible := f.(ucli.VisibleFlag)
		d, documented := f.(ucli.DocGenerationFlag)
		if !documented || visible && !shown.IsVisible() {
			continue
		}
		names := make([]string, 0, len(f.Names()))
		for _, n := range f.Names() {
			dash := "--"
			if len(n) == 1 {
				dash = "-"
			}
			names = append(names, dash+n)
		}
		m.line(".TP\n.B %s\n%s", troff(strings.Join(names, ", ")), troff(strings.ReplaceAll(d.GetUsage(), "`", "")))
	}
}

// troff makes a text safe: a backslash, a dash, and a dot at the start of a line
// mean something there.
func troff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

// exitStatus is one of those that scripts can rely on.
type exitStatus struct {
	code    int
	meaning string
}

func exitStatuses() []exitStatus {
	return []exitStatus{
		{0, "done"},
		{1, "failed; also a step on a thread that has ended"},
		{2, "the command line is wrong"},
		{3, "something named on the command line does not exist"},
		{4, "a file or a value has wrong content"},
		{5, "the agent failed"},
		{6, "the thread is suspended: it waits for an answer"},
		{7, "something in the store is damaged"},
		{74, "done, but the result could not be printed"},
		{75, "another process works on the thread, or its agent still runs"},
		{124, "a time limit was reached"},
		{129, "hung up"},
		{130, "interrupted"},
		{143, "terminated"},
	}
}
