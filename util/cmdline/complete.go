package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Candidate is a word that can stand where the cursor is.
type Candidate struct{ Word, Help string }

// Files is the candidate that stands for any file: the shell knows them best.
const Files = ":files"

// Values lists what can stand for a placeholder of a command's usage, such as
// "thread", or as the value of a flag, such as "--agent". Nil: nothing is known.
type Values func(placeholder string) []Candidate

// Complete lists what can stand for the last of words, which may be empty; words
// are the command line without the program's name. Hidden commands and flags are
// not offered. Candidates begin with the word as typed.
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

// position is where a command line has come to.
type position struct {
	commands []*cli.Command // that can follow
	flags    []cli.Flag     // that can follow
	usage    []string       // the words for arguments
	args     int            // that are there
	awaits   string         // a flag whose value is next, with its dashes
	plain    bool           // behind "--"
}

// pass takes a whole word.
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
			p.flags = slices.Concat(c.Flags, p.flags) // a command's own come first
			return
		}
	}
	p.commands = nil
	p.args++
}

// valueOf is the flag, by its first name, whose value follows; "": none does.
func valueOf(flags []cli.Flag, name string) string {
	for _, f := range flags {
		if _, is := f.(*cli.BoolFlag); !is && slices.Contains(f.Names(), name) {
			return dashes(f.Names()[0])
		}
	}
	return ""
}

// candidates are all that can stand here.
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

// argument lists what can stand for the next argument.
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

// flagCandidates lists the long names.
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
			usage = strings.ReplaceAll(d.GetUsage(), "`", "")
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
