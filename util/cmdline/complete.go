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
	p := newParser(app)
	for _, word := range words[:len(words)-1] {
		_ = p.pass(word) // what follows a mistake can be completed
	}
	return slices.DeleteFunc(p.candidates(typed, values), func(c Candidate) bool {
		return c.Word != Files && !strings.HasPrefix(c.Word, typed)
	})
}

// candidates returns all completions at this position.
func (p *parser) candidates(typed string, values Values) []Candidate {
	switch {
	case p.awaits != nil:
		return values(dashes(p.awaits.Names()[0]))
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
		return flagCandidates(slices.Concat(p.command.Flags, p.app.Flags))
	}
	if len(p.rest) == 0 && len(p.command.Subcommands) > 0 {
		return commandCandidates(p.command.Subcommands)
	}
	return p.argument(values)
}

// argument returns the completions of the next argument.
func (p *parser) argument(values Values) []Candidate {
	usage := strings.Fields(p.command.ArgsUsage)
	if len(usage) == 0 {
		return nil
	}
	word := usage[min(len(p.rest), len(usage)-1)]
	if len(p.rest) >= len(usage) && !strings.Contains(word, "…") {
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
	p := newParser(app)
	if err := p.parse(args); err != nil {
		return nil, err
	}
	return p.ordered(), nil
}

// NamesCommand reports whether a command line runs a command, rather than asking for help, naming only a group,
// or being invalid.
func NamesCommand(app *cli.App, args []string) bool {
	p := newParser(app)
	return p.parse(args) == nil && !p.help && len(p.path) > 0 && len(p.command.Subcommands) == 0
}

// parser reads a command line word by word.
type parser struct {
	app     *cli.App
	command *cli.Command // the current one; at first, the program with only its commands
	path    []string     // its name
	flags   []typedFlag
	awaits  cli.Flag // the next word is its value
	plain   bool     // after "--"
	help    bool
	rest    []string
}

// typedFlag is a flag as typed, with its value if that is a separate word.
type typedFlag struct {
	name  string
	words []string
	local bool // of the command
}

func newParser(app *cli.App) *parser {
	return &parser{app: app, command: &cli.Command{Subcommands: app.Commands}}
}

func (p *parser) parse(args []string) error {
	for _, arg := range args {
		if err := p.pass(arg); err != nil {
			return err
		}
	}
	switch {
	case p.awaits != nil:
		return UsageError(fmt.Sprintf("flag %s needs a value", args[len(args)-1]), p.at()+" --help")
	case p.help && len(p.command.Subcommands) > 0 && len(p.rest) > 0:
		return p.unknownCommand()
	}
	return nil
}

// pass reads a word.
func (p *parser) pass(word string) error {
	switch {
	case p.awaits != nil:
		flag := &p.flags[len(p.flags)-1]
		flag.words, p.awaits = append(flag.words, word), nil
	case word == "--" && !p.plain:
		p.plain = true
	case !p.plain && len(word) > 1 && word[0] == '-':
		return p.flag(word)
	default:
		p.word(word)
	}
	return nil
}

// word enters a subcommand or adds a positional argument.
func (p *parser) word(word string) {
	if len(p.rest) == 0 && !p.plain {
		for _, c := range p.command.Subcommands {
			if c.HasName(word) {
				p.path, p.command = append(p.path, word), c
				return
			}
		}
	}
	p.rest = append(p.rest, word)
}

func (p *parser) flag(word string) error {
	name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if name == "help" || name == "h" { // belongs to the command before it
		p.help = true
		return nil
	}
	f := flagNamed(p.command.Flags, name)
	local := f != nil
	if !local {
		f = flagNamed(p.app.Flags, name)
	}
	if f == nil {
		return p.unknownFlag(word, name)
	}
	p.flags = append(p.flags, typedFlag{name, []string{word}, local})
	if _, is := f.(*cli.BoolFlag); !is && !hasValue {
		p.awaits = f
	}
	return nil
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

func (p *parser) unknownFlag(word, name string) error {
	if len(p.command.Subcommands) > 0 && len(p.rest) > 0 {
		// The previous word should have been a command, which could have this flag.
		return p.unknownCommand()
	}
	hints := []string{p.at() + " --help"}
	if near := suggest.Nearest(name, flagNames(slices.Concat(p.command.Flags, p.app.Flags)), 1); len(near) > 0 {
		hints = append([]string{"did you mean " + dashes(near[0]) + "?"}, hints...)
	}
	return UsageError("unknown flag "+word, hints...)
}

func (p *parser) unknownCommand() error {
	return unknownWord(p.app, p.at(), p.rest[0], p.command.Subcommands)
}

// at returns the current command as typed.
func (p *parser) at() string { return strings.Join(append([]string{p.app.Name}, p.path...), " ") }

// ordered returns the reordered command line. A help flag removes everything else; the library would search
// for a topic of that name.
func (p *parser) ordered() []string {
	if p.help {
		return append(p.path, "--help")
	}
	var globals, early, locals []string
	for _, f := range p.flags {
		switch {
		case f.local:
			locals = append(locals, f.words...)
		case flagNamed(p.command.Flags, f.name) != nil: // typed before the command
			early = append(early, f.words...)
		default:
			globals = append(globals, f.words...)
		}
	}
	out := slices.Concat(globals, p.path, early, locals)
	if len(p.rest) > 0 {
		out = append(out, "--")
	}
	return append(out, p.rest...)
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
