package cmdline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/suggest"
)

// Candidate is a possible completion at the cursor.
type Candidate struct{ Word, Help string }

// Files is a candidate for any file, which the shell completes itself.
const Files = ":files"

// Values returns the values for a placeholder in a command's usage, such as "thread", or for a flag, such as
// "--agent"; nil if unknown.
type Values func(placeholder string) []Candidate

// Complete returns the completions of the last word in words, which can be empty. words is the command line
// without the program's name. Hidden commands and flags are omitted. Candidates start with the typed word.
func Complete(app *cli.App, words []string, values Values) []Candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	typed := words[len(words)-1]
	at := position{commands: app.Commands, flags: app.Flags}
	for _, word := range words[:len(words)-1] {
		at.pass(word)
	}
	return slices.DeleteFunc(at.candidates(typed, values), func(c Candidate) bool {
		return c.Word != Files && !strings.HasPrefix(c.Word, typed)
	})
}

// position is the state after parsing part of a command line.
type position struct {
	commands []*cli.Command // possible next commands
	flags    []cli.Flag     // possible next flags
	usage    []string       // argument placeholders
	args     int            // number of arguments so far
	awaits   string         // flag that needs a value next, with its dashes
	plain    bool           // after "--"
}

// pass parses a complete word.
func (p *position) pass(word string) {
	switch {
	case p.awaits != "":
		p.awaits = ""
	case p.plain:
		p.args++
	case word == "--":
		p.plain = true
	case len(word) > 1 && word[0] == '-':
		if name, _, whole := strings.Cut(strings.TrimLeft(word, "-"), "="); !whole {
			p.awaits = valueOf(p.flags, name)
		}
	default:
		p.descend(word)
	}
}

// descend enters a command, or counts an argument.
func (p *position) descend(word string) {
	for _, c := range p.commands {
		if c.HasName(word) {
			p.commands, p.usage = c.Subcommands, strings.Fields(c.ArgsUsage)
			p.flags = slices.Concat(c.Flags, p.flags) // the command's flags take precedence
			return
		}
	}
	p.commands = nil
	p.args++
}

// valueOf returns the first name of a flag that needs a value, or "".
func valueOf(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if _, is := f.(*cli.BoolFlag); !is && slices.Contains(f.Names(), name) {
			return dashes(f.Names()[0])
		}
	}
	return ""
}

// candidates returns all completions at this position.
func (p *position) candidates(typed string, values Values) []Candidate {
	switch {
	case p.awaits != "":
		return values(p.awaits)
	case p.plain:
		return p.argument(values)
	case strings.HasPrefix(typed, "-"):
		if flag, _, with := strings.Cut(typed, "="); with {
			var out []Candidate
			for _, c := range values(flag) {
				if c.Word != Files {
					out = append(out, Candidate{flag + "=" + c.Word, c.Help})
				}
			}
			return out
		}
		return flagCandidates(p.flags)
	}
	if len(p.commands) > 0 {
		return commandCandidates(p.commands)
	}
	return p.argument(values)
}

// argument returns the completions of the next argument.
func (p *position) argument(values Values) []Candidate {
	if len(p.usage) == 0 {
		return nil
	}
	word := p.usage[min(p.args, len(p.usage)-1)]
	if p.args >= len(p.usage) && !strings.Contains(word, "…") {
		return nil
	}
	var out []Candidate
	for name := range strings.SplitSeq(strings.Trim(word, "<>[]…"), "|") {
		out = append(out, values(strings.Trim(name, "<>[]…"))...)
	}
	return out
}

func commandCandidates(commands []*cli.Command) []Candidate {
	var out []Candidate
	for _, c := range commands {
		if !c.Hidden {
			out = append(out, Candidate{c.Name, c.Usage})
		}
	}
	return out
}

func flagCandidates(flags []cli.Flag) []Candidate {
	var out []Candidate
	seen := map[string]bool{}
	for _, f := range flags {
		shown, ok := f.(cli.VisibleFlag)
		if ok && !shown.IsVisible() {
			continue
		}
		usage := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			_, usage = SplitUsage(d.GetUsage())
		}
		for _, name := range f.Names() {
			if len(name) > 1 && !seen[name] {
				seen[name] = true
				out = append(out, Candidate{"--" + name, usage})
			}
		}
	}
	return out
}

// Reorder rewrites a command line to the only order that urfave/cli supports: global flags, command words,
// the command's flags, "--", the rest. People write flags anywhere, but the library would treat a flag after
// the first positional argument as another one. A command's flag takes precedence over a global one with the
// same name, even before the command.
func Reorder(app *cli.App, args []string) ([]string, error) {
	r := reorderer{app: app, global: flagTable(app.Flags), commands: app.Commands}
	return r.run(args)
}

// NamesCommand reports whether a command line runs a command, rather than asking for help, naming only a group,
// or being invalid.
func NamesCommand(app *cli.App, args []string) bool {
	r := reorderer{app: app, global: flagTable(app.Flags), commands: app.Commands}
	_, err := r.run(args)
	return err == nil && !r.help && len(r.path) > 0 && len(r.commands) == 0
}

type reorderer struct {
	app      *cli.App
	global   map[string]bool // name → takes a value
	local    map[string]bool // of the current command
	commands []*cli.Command  // below the current command
	path     []string

	help         bool
	globals      []globalFlag
	locals, rest []string
}

// globalFlag is a global flag as typed, with its value if that is a separate word.
type globalFlag struct {
	name  string
	words []string
}

func (r *reorderer) run(args []string) ([]string, error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			r.rest = append(r.rest, args[i+1:]...)
			return r.assemble()
		case len(arg) > 1 && arg[0] == '-':
			took, err := r.flag(arg, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += took
		default:
			r.word(arg)
		}
	}
	return r.assemble()
}

// word enters a subcommand or adds a positional argument.
func (r *reorderer) word(arg string) {
	if len(r.rest) == 0 {
		for _, c := range r.commands {
			if c.HasName(arg) {
				r.path = append(r.path, arg)
				r.local = flagTable(c.Flags)
				r.commands = c.Subcommands
				return
			}
		}
	}
	r.rest = append(r.rest, arg)
}

// flag adds a flag and returns the number of following arguments that belong to it.
func (r *reorderer) flag(arg string, behind []string) (int, error) {
	name := strings.TrimLeft(arg, "-")
	name, _, hasValue := strings.Cut(name, "=")
	takesValue, local := r.local[name]
	global := false
	if !local {
		takesValue, global = r.global[name]
	}
	if name == "help" || name == "h" { // belongs to the command before it
		r.help = true
		return 0, nil
	}
	if !local && !global {
		return 0, r.unknown(arg, name)
	}
	out, took := []string{arg}, 0
	if takesValue && !hasValue {
		if len(behind) == 0 {
			return 0, UsageError(fmt.Sprintf("flag %s needs a value", arg), r.helpHint())
		}
		out, took = append(out, behind[0]), 1
	}
	if global {
		r.globals = append(r.globals, globalFlag{name, out})
	} else {
		r.locals = append(r.locals, out...)
	}
	return took, nil
}

func (r *reorderer) unknown(arg, name string) error {
	if len(r.commands) > 0 && len(r.rest) > 0 {
		// The previous word should have been a command, which could have this flag.
		return unknownWord(r.app, strings.Join(append([]string{r.app.Name}, r.path...), " "), r.rest[0], r.commands)
	}
	var names []string
	for n := range r.local {
		names = append(names, n)
	}
	for n := range r.global {
		names = append(names, n)
	}
	hints := []string{r.helpHint()}
	if near := suggest.Nearest(name, names, 1); len(near) > 0 {
		hints = append([]string{"did you mean " + dashes(near[0]) + "?"}, hints...)
	}
	return UsageError("unknown flag "+arg, hints...)
}

func (r *reorderer) helpHint() string {
	return strings.Join(append([]string{r.app.Name}, append(r.path, "--help")...), " ")
}

// assemble returns the reordered command line. A help flag removes everything else; the library would search
// for a topic of that name.
func (r *reorderer) assemble() ([]string, error) {
	if r.help {
		if len(r.commands) > 0 && len(r.rest) > 0 {
			return nil, unknownWord(r.app, strings.Join(append([]string{r.app.Name}, r.path...), " "), r.rest[0], r.commands)
		}
		return append(r.path, "--help"), nil
	}
	var globals, locals []string
	for _, f := range r.globals {
		if _, local := r.local[f.name]; local {
			locals = append(locals, f.words...)
		} else {
			globals = append(globals, f.words...)
		}
	}
	out := append(globals, r.path...)
	out = append(out, locals...)
	out = append(out, r.locals...)
	if len(r.rest) > 0 {
		out = append(out, "--")
	}
	return append(out, r.rest...), nil
}

// flagTable maps every name of the flags to whether it takes a value.
func flagTable(flags []cli.Flag) map[string]bool {
	table := map[string]bool{}
	for _, f := range flags {
		takesValue := true
		if b, ok := f.(*cli.BoolFlag); ok && b != nil {
			takesValue = false
		}
		for _, n := range f.Names() {
			table[n] = takesValue
		}
	}
	return table
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
