package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
)

// FormatFlag is --format of a command whose result has forms of its own. It
// stands in for the global flag, so its names must hold all that make sense.
func FormatFlag(names []string, otherwise string) ucli.Flag {
	return &ucli.StringFlag{
		Name: "format", Usage: fmt.Sprintf("`FORMAT` of the result: %s (default: %s)", strings.Join(names, ", "), otherwise),
	}
}

// OwnFormat reads the flag of [formatFlag]; "" means that it was not given. A
// name that the whole program knows holds for errors, too; with any other, an
// error is text.
func (a *App) OwnFormat(c *ucli.Context, names []string) (string, error) {
	name := c.String("format")
	if name == "" && c.Bool("json") {
		name = string(render.JSON)
	}
	if name == "" {
		return "", nil
	}
	if f, err := render.ParseFormat(name); err == nil && slices.Contains(names, string(f)) {
		a.Flags.Format = string(f)
		return string(f), nil
	}
	a.TextErrors = true
	if slices.Contains(names, name) {
		return name, nil
	}
	hints := []string{"one of " + strings.Join(names, ", ")}
	if near := suggest.Nearest(name, names, 1); len(near) > 0 {
		hints = append([]string{"did you mean --format " + near[0] + "?"}, hints...)
	}
	return "", &protocol.Error{
		Code: protocol.CodeUsage, Message: fmt.Sprintf("unknown format %q", name), Hints: hints,
	}
}

// InGroups puts commands under headings.
func InGroups(commands []*ucli.Command, headings map[string]string) []*ucli.Command {
	for _, c := range commands {
		c.Category = headings[c.Name]
	}
	return commands
}

// Confirm asks a person whether something is meant; script is how it is said without
// being asked.
func (a *App) Confirm(ctx context.Context, question, script string) error {
	if !terminal.Is(a.Env.Stdin) {
		return cmdline.UsageError("nobody can be asked here: "+question, script)
	}
	said, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, plaintext.Line(question)+" [y/N] ")
	if err != nil {
		return err
	}
	if said = strings.ToLower(said); said != "y" && said != "yes" {
		return &protocol.Error{Code: protocol.CodeFailed, Message: "not done: the answer was no"}
	}
	return nil
}

// Leaf is a command that does something; see [cmdline.Leaf]. A flag that is given
// and empty comes of a variable that is not set: without it, the command would do
// something else than was meant.
func (a *App) Leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	flags := c.Flags
	return cmdline.Leaf(c, func(ctx context.Context, cc *ucli.Context) error {
		for _, f := range flags {
			name := f.Names()[0]
			if _, text := f.(*ucli.StringFlag); text && cc.IsSet(name) && cc.String(name) == "" && name != "prompt" {
				return cmdline.UsageError("flag --"+name+" is empty", cc.Command.HelpName+" --help")
			}
		}
		return run(ctx, cc)
	})
}

// Group is a command that only holds others.
func (a *App) Group(c ucli.Command) *ucli.Command { return cmdline.Group(a.Env.Stderr, c) }

// Say tells the user something on stderr that is not a result; on a terminal before the
// lines that count.
func (a *App) Say(format string, args ...any) {
	if a.Flags.Quiet {
		return
	}
	text := plaintext.Indent(fmt.Sprintf(format, args...))
	if v := a.shown.Load(); v != nil && v.live && (v.w == a.Env.Stderr || a.sameScreen()) {
		v.note(text)
		return
	}
	fmt.Fprintln(a.Env.Stderr, text)
}

// Hint is a line with the next command to type.
func (a *App) Hint(format string, args ...any) {
	a.Say("hint: %s", a.keepRemote(fmt.Sprintf(format, args...)))
}

// worksAt is a command for a thread that takes --remote.
var worksAt = lazyregexp.New(`uwf thread (step|resume|answer|retry) [0-9A-HJKMNP-TV-Z]{26}`)

// keepRemote lets a hint of a command that works at a remote work there, too: without
// --remote the thread would go on here alone, and part from the one there.
func (a *App) keepRemote(hint string) string {
	if a.WorksAt == "" || strings.Contains(hint, "--remote") {
		return hint
	}
	return worksAt().ReplaceAllStringFunc(hint, func(command string) string { return command + " --remote " + plaintext.Word(a.WorksAt) })
}

// EndsAs sets the exit status of commands that see a thread come to rest: a script
// must notice that a person is needed, or that the thread cannot go on.
func (a *App) EndsAs(out protocol.StepOutput) {
	switch {
	case out.Status == protocol.StatusSuspended && out.Question == nil && out.Error != nil && out.Error.Code == protocol.CodeLimit:
		a.Status = protocol.CodeLimit
	case out.Status == protocol.StatusSuspended, out.Status == protocol.StatusRateLimited:
		a.Status = protocol.CodeSuspended
	case out.Status == protocol.StatusError && out.Error != nil:
		a.Status = out.Error.Code
	}
}

// OrStdin is a value, or stdin for "-".
func (a *App) OrStdin(value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	data, err := io.ReadAll(a.Env.Stdin)
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}
