package cli

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
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
		values := func(what string) []cmdline.Candidate {
			if at := slices.Index(words, "help"); what == "topic" && at >= 0 {
				return topicValues(root, words[at+1:])
			}
			return a.values(ctx, what, words)
		}
		for _, found := range cmdline.Complete(root, words, values) {
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

// topicValues returns the commands and topics that help explains, given the words after help.
func topicValues(root *ucli.App, typed []string) []cmdline.Candidate {
	commands := cmdline.Complete(root, typed, func(string) []cmdline.Candidate { return nil })
	if len(typed) > 1 {
		return commands
	}
	return append(commands, words(guide.Topics()...)...)
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
func (a commands) values(ctx context.Context, what string, typed []string) []cmdline.Candidate {
	switch what {
	case "thread", "--thread":
		return a.threadValues(ctx, !onlyActive(typed))
	case "step", "good", "bad", "--start", "--before", "--from":
		return a.stepValues(ctx)
	case "workflow":
		all := a.projectValues()
		for _, w := range a.workflowValues(ctx) {
			if !slices.ContainsFunc(all, func(p cmdline.Candidate) bool { return p.Word == w.Word }) { // not hidden by the project's workflow
				all = append(all, w)
			}
		}
		return append(all, cmdline.Candidate{Word: cmdline.Files})
	case "name":
		return append(a.workflowValues(ctx), cmdline.Candidate{Word: cmdline.Files})
	case "remote", "--remote":
		return a.remoteValues()
	case "shell":
		return words(shellNames()...)
	case "--var":
		return threads.Commands{App: a.App}.VarValues(ctx, typed)
	case "--set":
		return threads.Commands{App: a.App}.SetValues(ctx, typed)
	case "--agent":
		return a.agentValues(ctx)
	case "--provider":
		return words(setup.PresetNames()...)
	case "--template":
		return words(templates.Names()...)
	case "--format":
		return words(formatsOf(typed)...)
	case "--status":
		return words(threads.Statuses()...)
	case "kind":
		return words("workflow", "start", "step", "detail", "turn", "text", "suspend")
	}
	if strings.Contains(what, "file") || slices.Contains([]string{"--output", "--content", "--detail", "--vars", "--scenario", "--home", "--store", "--cwd"}, what) {
		return []cmdline.Candidate{{Word: cmdline.Files}}
	}
	return nil
}

func words(all ...string) []cmdline.Candidate {
	var out []cmdline.Candidate
	for _, w := range all {
		out = append(out, cmdline.Candidate{Word: w})
	}
	return out
}

// onlyActive reports whether a command line applies only to active threads.
func onlyActive(typed []string) bool {
	return slices.Contains(typed, "thread") &&
		slices.ContainsFunc([]string{"step", "exec", "kill", "cancel", "stop", "wait", "watch"}, func(verb string) bool {
			return slices.Contains(typed, verb)
		})
}

// formatsOf returns the formats that the command supports.
func formatsOf(typed []string) []string {
	switch {
	case slices.Contains(typed, "graph"):
		return workflows.GraphFormats()
	case slices.Contains(typed, "workflow") && (slices.Contains(typed, "validate") || slices.Contains(typed, "check")):
		return workflows.ValidateFormats()
	case slices.Contains(typed, "walk"):
		return append(render.Formats(), "tree")
	}
	return render.Formats()
}

// threadValues returns the newest threads, newest first, and @ for the newest.
func (a commands) threadValues(ctx context.Context, ended bool) []cmdline.Candidate {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil
	}
	f := view.Filter{Ended: ended, Limit: offered}
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

// stepValues returns step addresses: the last step of each thread.
func (a commands) stepValues(ctx context.Context) []cmdline.Candidate {
	var out []cmdline.Candidate
	for _, t := range a.threadValues(ctx, true) {
		out = append(out, cmdline.Candidate{Word: t.Word + "@-1", Help: "last step: " + t.Help})
	}
	return out
}

func (a commands) workflowValues(ctx context.Context) []cmdline.Candidate {
	x, err := a.Index()
	if err != nil {
		return nil
	}
	all, err := x.Workflows(ctx)
	if err != nil {
		return nil
	}
	var out []cmdline.Candidate
	for _, w := range all {
		if w.Problem != "" {
			continue // a shell might interpret it
		}
		out = append(out, cmdline.Candidate{Word: w.Name, Help: "registered"})
	}
	return out
}

// remoteValues returns the configured remotes.
func (a commands) remoteValues() []cmdline.Candidate {
	all, err := a.Remotes()
	if err != nil {
		return nil
	}
	var out []cmdline.Candidate
	for _, r := range all {
		out = append(out, cmdline.Candidate{Word: r.Name, Help: r.Address})
	}
	return out
}

// projectValues returns the project's workflow names. Names with characters that are special to a shell or a
// terminal are omitted, because anyone may have put them there.
func (a commands) projectValues() []cmdline.Candidate {
	quiet := catalog.Catalog{Env: a.Env}
	found, err := quiet.Project()
	if err != nil {
		return nil
	}
	var out []cmdline.Candidate
	for _, f := range found {
		if protocol.WorkflowNameProblem(f.Name) == "" {
			out = append(out, cmdline.Candidate{Word: f.Name, Help: "of this project"})
		}
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
