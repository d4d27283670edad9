package cmdline

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/suggest"
)

// Leaf returns a command without subcommands. run gets the positional arguments, checked against c.ArgsUsage:
// <x> is required, [x] is optional, and a last word that ends in … takes any number.
//
// Leaf also checks required flags, after the arguments, because the library's error has neither a code nor a
// hint.
func Leaf(c ucli.Command, run func(ctx context.Context, c *ucli.Context) error) *ucli.Command {
	c.HideHelpCommand = true
	c.OnUsageError = OnUsageError
	PlainDefaults(c.Flags)
	required := optional(c.Flags)
	c.Action = func(cc *ucli.Context) error {
		line := form(cc, required)
		if err := checkArgs(cc, line); err != nil {
			return err
		}
		for _, f := range required {
			if !cc.IsSet(f.name) {
				help := cc.Command.HelpName + " --help"
				_, text := SplitUsage(f.usage)
				return UsageError("missing flag "+dashes(f.name)+": "+text, line, help)
			}
		}
		return run(cc.Context, cc)
	}
	return &c
}

// requiredNote ends the text of a required flag.
const requiredNote = " (required)"

type requiredFlag struct{ name, usage string }

// form returns the flag as typed, with the placeholder from its usage.
func (f requiredFlag) form() string {
	placeholder, _ := SplitUsage(f.usage)
	return dashes(f.name) + " " + placeholder
}

// form returns a command as typed, with its arguments and required flags.
func form(c *ucli.Context, required []requiredFlag) string {
	line := strings.TrimSpace(c.Command.HelpName + " " + c.Command.ArgsUsage)
	for _, f := range required {
		line += " " + f.form()
	}
	return line
}

// optional makes required flags optional for the library, and returns them.
func optional(flags []ucli.Flag) []requiredFlag {
	var required []requiredFlag
	note := func(name string, usage *string, is *bool) {
		if *is {
			*is = false
			required = append(required, requiredFlag{name, *usage})
			*usage += requiredNote
		}
	}
	for _, f := range flags {
		switch f := f.(type) {
		case *ucli.StringFlag:
			note(f.Name, &f.Usage, &f.Required)
		case *ucli.IntFlag:
			note(f.Name, &f.Usage, &f.Required)
		}
	}
	return required
}

// PlainDefaults simplifies the defaults in the help: no "(default: false)", and no quotes.
func PlainDefaults(flags []ucli.Flag) {
	for _, f := range flags {
		switch f := f.(type) {
		case *ucli.BoolFlag:
			f.DisableDefaultText = true
		case *ucli.StringFlag:
			f.DefaultText = f.Value // the library would quote it
		case *ucli.DurationFlag:
			f.DefaultText = "none"
		}
	}
}

// Group returns a command that only contains subcommands. It prints its help to stderr if no subcommand is
// given.
func Group(stderr io.Writer, c ucli.Command) *ucli.Command {
	c.HideHelpCommand = true
	c.OnUsageError = OnUsageError
	c.Action = func(cc *ucli.Context) error { return UnknownCommand(cc, stderr, cc.Command.HelpName, c.Subcommands) }
	return &c
}

// Branch is a command that is built only for command lines that may name it.
type Branch struct {
	names []string
	build func() *ucli.Command
}

// NewBranch returns a branch, given the command's name and aliases, separated by spaces.
func NewBranch(names string, build func() *ucli.Command) Branch {
	return Branch{strings.Fields(names), build}
}

// Branches builds the branches whose names include a word, or all if there are no words, and lists
// them under a heading in the help.
func Branches(words []string, heading string, branches ...Branch) []*ucli.Command {
	var built []*ucli.Command
	for _, b := range branches {
		if len(words) == 0 || slices.ContainsFunc(b.names, func(name string) bool { return slices.Contains(words, name) }) {
			built = append(built, b.build())
		}
	}
	return Under(heading, built...)
}

// UnknownCommand returns the error for a command line without a valid command. Help goes to stderr and the
// status is 2, so that a script with a missing word fails.
func UnknownCommand(c *ucli.Context, stderr io.Writer, at string, commands []*ucli.Command) error {
	if c.Args().Len() == 0 {
		if err := Help(stderr, c.App, strings.Fields(at)[1:]); err != nil {
			return err
		}
		return UsageError("which command?", at+" --help")
	}
	return unknownWord(c.App, at, c.Args().First(), commands)
}

// unknownWord returns the error for a word in place of a command. If none of these commands is similar, it
// suggests commands in other groups of root.
func unknownWord(root *ucli.App, at, word string, commands []*ucli.Command) error {
	hints := []string{at + " --help"}
	if near := suggest.Nearest(word, commandNames(commands), 1); len(near) > 0 {
		hints = append([]string{fmt.Sprintf("did you mean %s %s?", at, near[0])}, hints...)
	} else if elsewhere := named(root.Commands, root.Name, word); len(elsewhere) > 0 {
		hints = append([]string{"did you mean " + strings.Join(elsewhere[:min(3, len(elsewhere))], ", or ") + "?"}, hints...)
	}
	return UsageError(fmt.Sprintf("unknown command %q", strings.TrimSpace(strings.TrimPrefix(at+" "+word,
		root.Name+" "))), hints...)
}

func commandNames(commands []*ucli.Command) []string {
	var names []string
	for _, cmd := range commands {
		if !cmd.Hidden {
			names = append(names, cmd.Names()...)
		}
	}
	return names
}

// named lists the commands below at with a name, in help order.
func named(commands []*ucli.Command, at, name string) []string {
	var found []string
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		path := at + " " + c.Name
		if c.HasName(name) {
			found = append(found, path)
		}
		found = append(found, named(c.Subcommands, path, name)...)
	}
	return found
}

// Excludes returns the action of a flag that conflicts with another one.
func Excludes[T any](flag, other string, hints ...string) func(*ucli.Context, T) error {
	return func(c *ucli.Context, _ T) error {
		if !c.IsSet(other) {
			return nil
		}
		return UsageError(dashes(flag)+" and "+dashes(other)+" cannot be used together", hints...)
	}
}

// HelpCommand returns a program's "help" command.
func HelpCommand(root *ucli.App) *ucli.Command {
	return Leaf(ucli.Command{
		Name: "help", Usage: "print help for a command", ArgsUsage: "[command…]",
	}, func(ctx context.Context, c *ucli.Context) error {
		return Run(ctx, root, append(c.Args().Slice(), "--help"))
	})
}

// OnUsageError converts the library's flag errors to our form; [Run] finds unknown flags and missing values itself.
func OnUsageError(c *ucli.Context, err error, _ bool) error {
	at := c.App.Name
	if c.Command != nil && c.Command.HelpName != "" {
		at = c.Command.HelpName
	}
	message := err.Error()
	// Compiled on demand, because few runs need it.
	if m := regexp.MustCompile(`^invalid boolean value (".*") for -(\S+): parse error$`).FindStringSubmatch(message); m != nil {
		message = fmt.Sprintf("flag %s must be true or false, got %s", dashes(strings.TrimLeft(m[2], "-")), m[1])
	}
	return UsageError(message, at+" --help")
}

// checkArgs checks the positional arguments against the command's ArgsUsage. line is the command as typed.
func checkArgs(c *ucli.Context, line string) error {
	words := strings.Fields(c.Command.ArgsUsage)
	min, max := 0, len(words)
	for _, w := range words {
		if strings.HasPrefix(w, "<") {
			min++
		}
		if strings.HasSuffix(strings.TrimRight(w, ">]"), "…") {
			max = 1 << 20
		}
	}
	n := c.Args().Len()
	help := c.Command.HelpName + " --help"
	switch {
	case n < min:
		return UsageError(fmt.Sprintf("missing argument %s", words[n]), line, help)
	case n > max:
		return UsageError(fmt.Sprintf("unexpected argument %q", c.Args().Get(max)), line, help)
	}
	for i := range min {
		if strings.TrimSpace(c.Args().Get(i)) == "" {
			return UsageError(fmt.Sprintf("argument %s is empty", words[i]), help)
		}
	}
	return nil
}

func flagNames(flags []ucli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}
