// Package cmdreftest writes the command reference in docs/cli from the command tree, so that
// it matches --help.
package cmdreftest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/util/cmdline"
)

// generated is a note in each file.
const generated = "<!-- Generated from the program by TestCommandReference; do not edit. -->\n\n"

// Files returns the pages of a program by name: README.md has the list of commands, the global flags
// and tail; each group of commands has a page, and so has each section of commands without a group.
func Files(app *ucli.App, tail string) map[string]string {
	pages := map[string]string{}
	var index strings.Builder
	fmt.Fprintf(&index, "%s# Command reference\n\n%s\n\n```\n%s <command> [flags]\n```\n\n"+
		"Flags can precede or follow arguments. `%s help <command>` prints the same text as these pages.\n",
		generated, cmdline.Sentence(app.Usage), app.Name, app.Name)
	for _, section := range cmdline.Sections(app.Commands) {
		fmt.Fprintf(&index, "\n## %s\n\n| command | what it does |\n| --- | --- |\n", section.Name)
		for _, c := range section.Commands {
			title := section.Name
			if section.Name == cmdline.Common {
				title = app.Name + " " + c.Name
			}
			name := slug(strings.TrimPrefix(title, app.Name+" ")) + ".md"
			if len(c.Subcommands) > 0 {
				name = c.Name + ".md"
				pages[name] = generated + "# " + app.Name + " " + c.Name + "\n\n" + group(app.Name, app.Name+" "+c.Name, c)
			} else {
				if pages[name] == "" {
					pages[name] = generated + "# " + title + "\n"
				}
				pages[name] += "\n" + command(app.Name, app.Name, c)
			}
			fmt.Fprintf(&index, "| %s | %s |\n", link(name, app.Name+" "+c.Name), cell(cmdline.Sentence(c.Usage)))
		}
	}
	fmt.Fprintf(&index, "\n## Global flags\n\n%s%s", block(cmdline.FlagList(app.Flags, true, cmdline.Columns)), tail)
	pages["README.md"] = index.String()
	return pages
}

// Page returns all commands of a small program on one page, below head.
func Page(app *ucli.App, head string) string {
	c := &ucli.Command{Name: app.Name, Usage: app.Usage, Subcommands: app.Commands}
	return generated + "# " + app.Name + "\n\n" + head + "\n## Global flags\n\n" +
		block(cmdline.FlagList(app.Flags, true, cmdline.Columns)) + "\n## Commands\n\n" + group(app.Name, app.Name, c)
}

// Compare reports which files of dir differ from want, or writes them and removes the others that were generated.
func Compare(dir string, want map[string]string, update bool) (differ []string, err error) {
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	for _, path := range old {
		if _, wanted := want[filepath.Base(path)]; !wanted {
			differ = append(differ, filepath.Base(path)+" is left over")
			if update {
				err = os.Remove(path)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		path := filepath.Join(dir, name)
		if update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(path, []byte(want[name]), 0o644); err != nil {
				return nil, err
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || string(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))) != want[name] {
			differ = append(differ, name)
		}
	}
	if update {
		differ = nil
	}
	return differ, nil
}

// group returns a list of the commands of a group and then each of them.
func group(program, path string, c *ucli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", cmdline.Sentence(c.Usage))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	b.WriteString(description(program, c))
	sections := cmdline.Sections(c.Subcommands)
	b.WriteString("\n")
	for _, s := range sections {
		if len(sections) > 1 {
			fmt.Fprintf(&b, "**%s**\n\n", s.Name)
		}
		b.WriteString("| command | what it does |\n| --- | --- |\n")
		for _, sub := range s.Commands {
			fmt.Fprintf(&b, "| %s | %s |\n", link("", path+" "+sub.Name), cell(cmdline.Sentence(sub.Usage)))
		}
		b.WriteString("\n")
	}
	for i, s := range sections {
		for k, sub := range s.Commands {
			if i+k > 0 {
				b.WriteString("\n")
			}
			b.WriteString(command(program, path, sub))
		}
	}
	return b.String()
}

// command returns one command, and those below it.
func command(program, parent string, c *ucli.Command) string {
	var b strings.Builder
	path := parent + " " + c.Name
	fmt.Fprintf(&b, "## %s\n\n", path)
	if len(c.Subcommands) > 0 {
		return b.String() + group(program, path, c)
	}
	fmt.Fprintf(&b, "%s\n\n%s", cmdline.Sentence(escape(c.Usage)), block(cmdline.UsageLine(path, c)+"\n"))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	b.WriteString(description(program, c))
	if flags := cmdline.FlagList(c.Flags, false, cmdline.Columns); flags != "" {
		b.WriteString("\nFlags:\n\n" + block(flags))
	}
	if _, examples := cmdline.Description(c.Description, program); len(examples) > 0 {
		b.WriteString("\nExamples:\n\n" + block(strings.Join(examples, "\n")+"\n"))
	}
	return b.String()
}

func description(program string, c *ucli.Command) string {
	var b strings.Builder
	blocks, _ := cmdline.Description(c.Description, program)
	for _, k := range blocks {
		if k.Verbatim {
			b.WriteString("\n" + block(k.Text+"\n"))
			continue
		}
		k.Text = escape(k.Text)
		b.WriteString("\n" + strings.Join(k.Lines(cmdline.Columns), "\n") + "\n")
	}
	return b.String()
}

func block(text string) string { return "```text\n" + text + "```\n" }

func link(page, command string) string {
	return fmt.Sprintf("[`%s`](%s#%s)", command, page, slug(command))
}

func slug(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// escape keeps <words> of running text from being read as HTML.
func escape(s string) string { return strings.NewReplacer("<", `\<`, "*", `\*`).Replace(s) }

func cell(s string) string { return strings.ReplaceAll(escape(s), "|", `\|`) }
