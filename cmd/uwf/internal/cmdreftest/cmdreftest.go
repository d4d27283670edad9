// Package cmdreftest writes the reference of all commands from the command tree
// itself, so that it cannot say anything else than --help does.
package cmdreftest

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// Markdown is the reference of a program: what it knows as a whole, then each
// command with its arguments and flags, in the order of the help. Hidden commands
// are left out.
func Markdown(app *ucli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands of %s\n\n", app.Name)
	b.WriteString("Written by `go test ./internal/cli -run TestCommandReference -update` in `cmd/uwf`. Do not edit.\n\n")
	b.WriteString("Flags may stand before and behind arguments. These are known to every command:\n\n")
	flags(&b, app.Flags)
	for _, c := range app.Commands {
		command(&b, app.Name, c)
	}
	return b.String()
}

func command(b *strings.Builder, parent string, c *ucli.Command) {
	if c.Hidden {
		return
	}
	name := parent + " " + c.Name
	if len(c.Subcommands) > 0 {
		fmt.Fprintf(b, "\n## %s\n\n%s\n", name, sentence(c.Usage))
		for _, sub := range c.Subcommands {
			command(b, name, sub)
		}
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n```\n%s\n```\n\n%s\n", name, strings.TrimSpace(name+" "+usage(c)), sentence(c.Usage))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if c.Description != "" {
		b.WriteString("\n" + description(c.Description) + "\n")
	}
	if visible := c.VisibleFlags(); len(visible) > 0 {
		b.WriteString("\n")
		flags(b, c.Flags)
	}
}

// usage is what follows the name.
func usage(c *ucli.Command) string {
	if len(c.VisibleFlags()) > 0 {
		return strings.TrimSpace(c.ArgsUsage + " [flags]")
	}
	return c.ArgsUsage
}

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// description keeps the text; what is indented in it are examples.
func description(s string) string {
	var out []string
	block := false
	for _, line := range strings.Split(s, "\n") {
		example := strings.HasPrefix(line, "   ")
		if example != block {
			out = append(out, "```")
			block = example
		}
		out = append(out, escape(strings.TrimPrefix(line, "   "), example))
	}
	if block {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

// escape keeps <words> of running text from being taken for HTML.
func escape(line string, example bool) string {
	if example {
		return line
	}
	return strings.NewReplacer("<", `\<`, "*", `\*`).Replace(line)
}

// flags is a table; one that is hidden is left out.
func flags(b *strings.Builder, list []ucli.Flag) {
	b.WriteString("| flag | what |\n| --- | --- |\n")
	for _, f := range list {
		doc, ok := f.(ucli.DocGenerationFlag)
		if v, hides := f.(ucli.VisibleFlag); !ok || hides && !v.IsVisible() {
			continue
		}
		var names []string
		for _, n := range f.Names() {
			names = append(names, "`"+dashes(n)+"`")
		}
		placeholder, text := split(doc.GetUsage())
		if doc.TakesValue() {
			names[0] = strings.TrimSuffix(names[0], "`") + " " + placeholder + "`"
		}
		fmt.Fprintf(b, "| %s | %s%s |\n", strings.Join(names, ", "), cell(text), standard(doc))
	}
}

// split takes the placeholder, which stands between back quotes, out of a usage.
func split(usage string) (placeholder, text string) {
	before, rest, found := strings.Cut(usage, "`")
	name, after, closed := strings.Cut(rest, "`")
	if !found || !closed {
		return "VALUE", usage
	}
	return name, before + name + after
}

// standard is a flag's default, if the help shows it.
func standard(f ucli.DocGenerationFlag) string {
	value := f.GetDefaultText()
	if value == "" || value == `""` || !f.TakesValue() || strings.Contains(f.GetUsage(), "(default") {
		return ""
	}
	return " (default: " + cell(strings.Trim(value, `"`)) + ")"
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(s)
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
