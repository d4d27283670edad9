// Package cmdline contains the command line conventions shared by all programs: flags before and after
// arguments, arguments checked against the usage, errors with a code and a hint, text output for people and
// JSON for programs.
package cmdline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
)

// FormatIn returns the value of --format in a command line that could not be parsed, so that the error has
// the right format.
func FormatIn(args []string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--format="); ok {
			return v
		}
		if arg == "--json" {
			return "json"
		}
		if arg == "--format" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// UsageError returns an error about the command line.
func UsageError(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// maxMessage bounds the length of a message, which can quote an argument of any length.
const maxMessage = 1000

// Coded returns an error with a code and hints.
func Coded(code protocol.Code, message string, hints ...string) error {
	return &protocol.Error{Code: code, Message: message, Hints: hints}
}

// NotFound returns an error for an object on the command line that doesn't exist.
func NotFound(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: plaintext.Short(message, maxMessage), Hints: hints}
}

// Invalid returns an error for a file or value with invalid content.
func Invalid(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message, Hints: hints}
}

// Report prints an error with its hints, either as text or as one JSON object. Errors quote files and agents,
// so their text is escaped even outside a terminal, because people view logs in terminals. All lines of the message except the first are indented, so that quoted text
// can't pass for a hint.
func Report(w io.Writer, program string, e *protocol.Error, asJSON bool) {
	known := hints.All("", e)
	if !asJSON {
		fmt.Fprintf(w, "%s: %s\n", program, plaintext.Indent(plaintext.Escape(strings.TrimRight(e.Message, "\r\n"))))
		for _, h := range known {
			fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
		}
		return
	}
	type body struct {
		Code    protocol.Code `json:"code"`
		Message string        `json:"message"`
		Hint    string        `json:"hint,omitempty"`
		// Machine means that another machine can succeed ([protocol.OfMachine]).
		Machine bool `json:"machine,omitempty"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // hints contain <thread>
	// Encoding strings can't fail, and a write error has nowhere to go.
	_ = enc.Encode(map[string]body{"error": {e.Code, e.Message, strings.Join(known, "\n"), protocol.OfMachine(e)}})
}

// DidYouMean returns a hint with the word that was probably meant, preceded by before; nil if no word is
// similar.
func DidYouMean(before, word string, known []string) []string {
	near := suggest.Nearest(word, known, 1)
	if len(near) == 0 {
		return nil
	}
	return []string{"did you mean " + before + plaintext.Word(near[0]) + "?"}
}

// Choices returns hints for an unknown word: the word that was probably meant, and all choices.
func Choices(before, word string, known []string) []string {
	return append(DidYouMean(before, word, known), "one of "+strings.Join(known, ", "))
}

// NoFile returns the error for a file on the command line that doesn't exist.
func NoFile(dir, path string, hints ...string) error {
	if near := suggest.File(dir, path); near != "" {
		hints = append([]string{"did you mean " + plaintext.Word(near) + "?"}, hints...)
	}
	return NotFound("file not found: "+path, hints...)
}

// Version returns the version that "go install" recorded in the binary.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Format returns the output format: the requested one, or else text on a terminal and JSON otherwise.
func Format(asked string, stdout any) render.Format {
	if f, err := render.ParseFormat(asked); err == nil {
		return f
	}
	if terminal.Is(stdout) {
		return render.Text
	}
	return render.JSON
}

// CheckFormat returns an error for an unknown format. An empty format is valid.
func CheckFormat(asked string) error {
	if asked == "" {
		return nil
	}
	if _, err := render.ParseFormat(asked); err != nil {
		return UsageError(err.Error())
	}
	return nil
}

// Colours reports whether output to a stream can be colored: a terminal that isn't dumb, unless NO_COLOR is
// set or CLICOLOR is 0; any stream if CLICOLOR_FORCE is set and isn't 0. NO_COLOR takes precedence.
func Colours(e env.Env, stream any) bool {
	force := e.Get("CLICOLOR_FORCE")
	switch {
	case e.Get("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal.Is(stream) && e.Get("CLICOLOR") != "0" && e.Get("TERM") != "dumb"
}

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
