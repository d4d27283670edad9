package cli

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

// completionScripts ask this program for candidates; one per shell.
//
//go:embed completion
var completionScripts embed.FS

// shells maps shells with a completion script to the suffixes of the scripts' names.
func shells() map[string]string {
	return map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}
}

func shellNames() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (a commands) completionCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "completion", Usage: "print a shell completion script", ArgsUsage: "<shell>",
	}, func(_ context.Context, c *ucli.Context) error {
		name := strings.ToLower(c.Args().First())
		end, ok := shells()[name]
		if !ok {
			return cmdline.UsageError(fmt.Sprintf("no completion for %q", c.Args().First()), cmdline.Choices("uwf completion ", name, shellNames())...)
		}
		script, err := completionScripts.ReadFile("completion/uwf." + end)
		if err != nil {
			return err
		}
		_, err = a.Env.Stdout.Write(script)
		return err
	})
}

// completeCommand prints candidates for the scripts, one per line, with a tab before the description. It
// never fails, because errors would not be visible.
func (a commands) completeCommand(root *ucli.App) *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "__complete", Hidden: true, Usage: "list completions of the last word", ArgsUsage: "[word…]",
	}, func(ctx context.Context, c *ucli.Context) error {
		words := c.Args().Slice()
		a.takeHome(words)
		for _, found := range cmdline.Complete(root, words, func(what string) []cmdline.Candidate { return a.values(ctx, what) }) {
			line := plaintext.Line(found.Word)
			if found.Help != "" {
				line += "\t" + term.FirstLine(found.Help, 60)
			}
			if _, err := fmt.Fprintln(a.Env.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeHome uses the home given in the words to complete.
func (a commands) takeHome(words []string) {
	for i, word := range words {
		for flag, into := range map[string]*string{"--home": &a.Flags.Home, "--store": &a.Flags.Store} {
			if word == flag && i+2 < len(words) {
				*into = words[i+1]
			} else if value, ok := strings.CutPrefix(word, flag+"="); ok && i+1 < len(words) {
				*into = value
			}
		}
	}
}

// offered bounds the number of threads, newest first.
const offered = 50

// values lists the values of an argument or flag. Errors yield no candidates.
func (a commands) values(ctx context.Context, what string) []cmdline.Candidate {
	files := []cmdline.Candidate{{Word: cmdline.Files}}
	switch what {
	case "thread", "--thread":
		return a.threadValues(ctx)
	case "workflow", "name":
		return append(a.workflowValues(ctx), files...)
	case "--agent":
		return a.agentValues(ctx)
	case "--output", "--content", "--detail", "--vars", "--scenario", "--home", "--store", "--cwd":
		return files
	}
	if strings.Contains(what, "file") {
		return files
	}
	return nil
}

// threadValues returns the newest threads, newest first, and @ for the newest.
func (a commands) threadValues(ctx context.Context) []cmdline.Candidate {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil
	}
	f := view.Filter{Ended: true, Limit: offered}
	out := []cmdline.Candidate{{Word: names.Newest, Help: "the newest thread"}}
	for item := range view.Items(ctx, e, view.Listed(ctx, e.Reader.Heads, f, func(error) {}), f) {
		help := string(item.Status)
		if item.WorkflowName != "" {
			help = string(item.WorkflowName) + ", " + help
		}
		out = append(out, cmdline.Candidate{Word: item.Thread, Help: help + ": " + item.Title})
	}
	return out
}

// workflowValues returns the workflows of the project and the registry. Names with characters that are special to a
// shell or a terminal are omitted, because anyone may have put them there.
func (a commands) workflowValues(ctx context.Context) []cmdline.Candidate {
	quiet := catalog.Catalog{Env: a.Env, Registry: func() (heads.Registry, error) { return a.Index() }}
	all, err := quiet.List(ctx)
	if err != nil {
		return nil
	}
	var out []cmdline.Candidate
	for _, w := range all {
		if protocol.WorkflowNameProblem(w.Name) != "" {
			continue
		}
		help := "registered"
		if w.Origin == catalog.OriginProject {
			help = "of this project"
		}
		out = append(out, cmdline.Candidate{Word: w.Name, Help: help})
	}
	return out
}

// agentValues returns the aliases in the config and the agents on PATH.
func (a commands) agentValues(ctx context.Context) []cmdline.Candidate {
	var out []cmdline.Candidate
	known := map[string]bool{}
	if c, ok := a.quietConfig(ctx); ok {
		for _, alias := range slices.Sorted(maps.Keys(c.Agents)) {
			known[c.Agents[alias].Command] = true
			out = append(out, cmdline.Candidate{Word: alias, Help: c.Agents[alias].Command})
		}
	}
	for _, name := range discover.OnPath(a.Env) {
		if !known[name] {
			out = append(out, cmdline.Candidate{Word: name, Help: "on PATH"})
		}
	}
	return out
}

// quietConfig returns the config if it is readable.
func (a commands) quietConfig(ctx context.Context) (protocol.Config, bool) {
	dirs, err := a.Dirs()
	if err != nil {
		return protocol.Config{}, false
	}
	c, err := config.Of(dirs).Load(ctx, a.Env)
	return c, err == nil
}
