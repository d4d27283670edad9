package cmdline

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/terminal"
)

// Run runs a command line, with flags anywhere. It prints the help itself.
func Run(ctx context.Context, app *ucli.App, args []string) error {
	args, err := Reorder(app, args)
	if err != nil {
		return err
	}
	if n := len(args) - 1; n >= 0 && args[n] == "--help" && !slices.Contains(args, "--") {
		return Help(app.Writer, app, args[:n])
	}
	return app.RunContext(ctx, append([]string{app.Name}, args...))
}

// Columns is the width of help where the width of the terminal is unknown.
const Columns = 80

// widestText bounds the lines of help: longer ones are hard to read.
const widestText = 100

// Help writes the help of the command that words name; no words name the program.
// It is as wide as the terminal that w is, or [Columns].
func Help(w io.Writer, app *ucli.App, words []string) error {
	width, _ := terminal.Size(w)
	if width == 0 {
		width = Columns
	}
	width = max(40, min(width, widestText))
	path, c := app.Name, root(app)
	for _, word := range words {
		at := slices.IndexFunc(c.Subcommands, func(sub *ucli.Command) bool { return sub.HasName(word) })
		if at < 0 {
			break
		}
		c = c.Subcommands[at]
		path += " " + c.Name
	}
	_, err := io.WriteString(w, helpText(app, path, c, width))
	return err
}

// root returns the program as a command.
func root(app *ucli.App) *ucli.Command {
	return &ucli.Command{Name: app.Name, Usage: app.Usage, Description: app.Description, Subcommands: app.Commands,
		Flags: app.Flags, ArgsUsage: app.ArgsUsage}
}

func helpText(app *ucli.App, path string, c *ucli.Command, width int) string {
	var b strings.Builder
	text, examples := Description(c.Description, app.Name)
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", strings.Join(Wrap(Sentence(c.Usage), width), "\n"), UsageLine(path, c))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: %s\n", strings.Join(c.Aliases, ", "))
	}
	for _, block := range text {
		b.WriteString("\n")
		for _, line := range block.Lines(width) {
			b.WriteString(line + "\n")
		}
	}
	for _, g := range Sections(c.Subcommands) {
		fmt.Fprintf(&b, "\n%s:\n", g.Name)
		writeColumns(&b, g.rows(), width)
	}
	if rows := flagRows(c.Flags, path == app.Name); len(rows) > 0 {
		b.WriteString("\nFlags:\n")
		writeColumns(&b, rows, width)
	}
	if len(examples) > 0 {
		b.WriteString("\nExamples:\n  " + strings.ReplaceAll(strings.Join(examples, "\n"), "\n", "\n  ") + "\n")
	}
	if path != app.Name {
		fmt.Fprintf(&b, "\nGlobal flags: %s --help\n", app.Name)
	}
	return strings.ReplaceAll(b.String(), "  \n", "\n")
}

// UsageLine returns a command as it is typed. Its UsageText replaces its ArgsUsage.
func UsageLine(path string, c *ucli.Command) string {
	if len(c.Subcommands) > 0 {
		return path + " <command> [flags]"
	}
	line := strings.TrimSpace(path + " " + cmp.Or(c.UsageText, c.ArgsUsage))
	if len(flagRows(c.Flags, false)) > 0 {
		line += " [flags]"
	}
	return line
}

// Common heads the commands that a beginner needs.
const Common = "Common commands"

// Under puts commands under a heading of the help.
func Under(heading string, commands ...*ucli.Command) []*ucli.Command {
	for _, c := range commands {
		c.Category = heading
	}
	return commands
}

// Describe sets descriptions from a text in which "# words" begins the one of a command. A description that
// a command has already comes first.
func Describe(commands []*ucli.Command, text string) {
	for _, section := range strings.Split("\n"+text, "\n# ")[1:] {
		words, text, _ := strings.Cut(section, "\n")
		if c := find(commands, strings.Fields(words)); c != nil {
			c.Description = strings.Trim(c.Description+"\n\n"+text, "\n")
		}
	}
}

// find returns the command that words name, nil if there is none.
func find(commands []*ucli.Command, words []string) (c *ucli.Command) {
	for _, word := range words {
		at := slices.IndexFunc(commands, func(c *ucli.Command) bool { return c.HasName(word) })
		if at < 0 {
			return nil
		}
		c, commands = commands[at], commands[at].Subcommands
	}
	return c
}

// Section is a heading with the commands below it.
type Section struct {
	Name     string
	Commands []*ucli.Command
}

// Sections returns the commands that are not hidden by their categories, in the order of first appearance.
func Sections(commands []*ucli.Command) []Section {
	var out []Section
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		name := c.Category
		if name == "" {
			name = "Commands"
		}
		at := slices.IndexFunc(out, func(g Section) bool { return g.Name == name })
		if at < 0 {
			at = len(out)
			out = append(out, Section{Name: name})
		}
		out[at].Commands = append(out[at].Commands, c)
	}
	return out
}

func (g Section) rows() [][2]string {
	var rows [][2]string
	for _, c := range g.Commands {
		rows = append(rows, [2]string{c.Name, strings.TrimSuffix(Sentence(c.Usage), ".")})
	}
	return rows
}

// Sentence returns s with a capital letter and a full stop.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// FlagList returns the flags of a command as help prints them, at most width columns wide.
func FlagList(flags []ucli.Flag, ofProgram bool, width int) string {
	var b strings.Builder
	writeColumns(&b, flagRows(flags, ofProgram), width)
	return b.String()
}

// flagRows returns the flags that are not hidden and their texts. The program has the flag --help.
func flagRows(flags []ucli.Flag, ofProgram bool) [][2]string {
	var rows [][2]string
	for _, f := range flags {
		doc, ok := f.(ucli.DocGenerationFlag)
		if v, hides := f.(ucli.VisibleFlag); !ok || hides && !v.IsVisible() || !ofProgram && f.Names()[0] == "help" {
			continue
		}
		short, long, also := "    ", "", ""
		for _, name := range f.Names() {
			switch {
			case len(name) == 1:
				short = "-" + name + ", "
			case long == "":
				long = dashes(name)
			default:
				also += " (alias " + dashes(name) + ")"
			}
		}
		placeholder, text := SplitUsage(doc.GetUsage())
		if doc.TakesValue() {
			long += " " + placeholder
		}
		if _, repeats := f.(*ucli.StringSliceFlag); repeats {
			long += "..."
		}
		if value := doc.GetDefaultText(); value != "" && value != `""` && doc.TakesValue() &&
			!strings.Contains(text, "(default") {
			text += " (default " + strings.Trim(value, `"`) + ")"
		}
		rows = append(rows, [2]string{short + long, text + also})
	}
	sorting.Stable(rows, func(a, b [2]string) int { return cmp.Compare(optionalRow(a), optionalRow(b)) })
	return rows
}

// optionalRow returns 0 for a flag that is required, so that it comes first, and 1 for others.
func optionalRow(row [2]string) int {
	if strings.HasSuffix(row[1], requiredNote) {
		return 0
	}
	return 1
}

// SplitUsage splits the usage of a flag into the placeholder, which it begins with in back quotes, and the text.
func SplitUsage(usage string) (placeholder, text string) {
	before, rest, found := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	switch {
	case !found || !closed:
		return "VALUE", usage
	case before == "":
		return name, strings.TrimSpace(after)
	}
	return name, before + name + after
}

// writeColumns writes rows of two columns, the second wrapped. A first cell that is too long for its column
// has a line to itself.
func writeColumns(b *strings.Builder, rows [][2]string, width int) {
	const widestCell = 30 // leaves 46 of 80 columns for the text
	column := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r[0]); n <= widestCell {
			column = max(column, n)
		}
	}
	for _, r := range rows {
		first := r[0]
		if utf8.RuneCountInString(first) > column {
			b.WriteString("  " + first + "\n")
			first = ""
		}
		for _, line := range Wrap(r[1], width-column-4) {
			fmt.Fprintf(b, "  %-*s  %s\n", column, first, line)
			first = ""
		}
	}
}

// Block is a paragraph of a description, or lines that stay as they are.
type Block struct {
	Text     string
	Verbatim bool
}

// Lines returns a block in lines: a paragraph wrapped, other lines indented by two.
func (k Block) Lines(width int) []string {
	if !k.Verbatim {
		return Wrap(k.Text, width)
	}
	return strings.Split("  "+strings.ReplaceAll(k.Text, "\n", "\n  "), "\n")
}

// Description splits a description into its blocks and the examples at its end. Lines that are indented by
// three spaces stay as they are; those that begin with a command of the program are examples, unless the
// sentence before them ends with a colon.
func Description(text, program string) (blocks []Block, examples []string) {
	open := false // the last block can grow
	for _, line := range strings.Split(text, "\n") {
		verbatim, is := strings.CutPrefix(line, "   ")
		switch n := len(blocks) - 1; {
		case strings.TrimSpace(line) == "":
			open = false
		case !open || blocks[n].Verbatim != is:
			blocks = append(blocks, Block{verbatim, is})
			open = true
		case is:
			blocks[n].Text += "\n" + verbatim
		default:
			blocks[n].Text += " " + line
		}
	}
	for n := len(blocks) - 1; n >= 0 && blocks[n].Verbatim && strings.Contains(blocks[n].Text, program+" "); n-- {
		if n > 0 && strings.HasSuffix(blocks[n-1].Text, ":") {
			break
		}
		examples = append([]string{blocks[n].Text}, examples...)
		blocks = blocks[:n]
	}
	return blocks, examples
}

// Wrap breaks a text at spaces into lines of at most width columns, unless a word is longer.
func Wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line += " "
			used++
		}
		line += word
		used += n
	}
	return append(lines, line)
}
