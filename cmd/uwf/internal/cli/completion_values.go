package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/render"
)

// offered is how many threads are offered: the newest ones.
const offered = 50

// values lists what can stand for an argument or a flag's value. What cannot be
// read offers nothing.
func (a commands) values(ctx context.Context, what string, typed []string) []cmdline.Candidate {
	switch what {
	case "thread", "--thread":
		return a.threadValues(ctx, !onlyActive(typed))
	case "step", "good", "bad", "--start", "--before", "--from":
		return a.stepValues(ctx)
	case "workflow":
		all := a.projectValues()
		for _, w := range a.workflowValues(ctx) {
			if !slices.ContainsFunc(all, func(p cmdline.Candidate) bool { return p.Word == w.Word }) { // which the project's hides
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
	case "key":
		return a.keyValues(ctx)
	case "--var":
		return threads.New(a.App).VarValues(ctx, typed)
	case "--set":
		return threads.New(a.App).SetValues(ctx, typed)
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

// onlyActive reports whether a command line is one of those that have nothing to do with
// an ended thread.
func onlyActive(typed []string) bool {
	return slices.Contains(typed, "thread") &&
		slices.ContainsFunc([]string{"step", "exec", "kill", "cancel", "stop", "wait", "watch"}, func(verb string) bool {
			return slices.Contains(typed, verb)
		})
}

// formatsOf are the formats that the command of a line knows.
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

// threadValues are the newest threads, newest first, and @ for the newest of all.
func (a commands) threadValues(ctx context.Context, ended bool) []cmdline.Candidate {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil
	}
	f := view.Filter{Ended: ended, Limit: offered}
	out := []cmdline.Candidate{{Word: app.Newest, Help: "the newest thread"}}
	for item := range view.Items(ctx, e, view.Listed(ctx, e.Heads, f, func(error) {}), f) {
		help := string(item.Status)
		if item.WorkflowName != nil {
			help = *item.WorkflowName + ", " + help
		}
		out = append(out, cmdline.Candidate{Word: item.Thread, Help: help + ": " + item.Title})
	}
	return out
}

// stepValues are places in threads: the last step of each.
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
			continue // a shell might run it
		}
		out = append(out, cmdline.Candidate{Word: w.Name, Help: "registered"})
	}
	return out
}

// remoteValues are the remotes that the home knows.
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

// projectValues are the workflows of the project that a name stands for. A name that a
// shell or a terminal might take for more is left out: anyone may have put it there.
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

// agentValues are the aliases of the config and the agents on PATH.
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

// quietConfig is the config, if it can be read.
func (a commands) quietConfig(ctx context.Context) (protocol.Config, bool) {
	dirs, err := a.Dirs()
	if err != nil {
		return protocol.Config{}, false
	}
	c, err := config.Load(ctx, dirs.Config(), a.Env)
	return c, err == nil
}

// keyValues are the keys of the config that are set.
func (a commands) keyValues(ctx context.Context) []cmdline.Candidate {
	c, ok := a.quietConfig(ctx)
	if !ok {
		return nil
	}
	keys := []string{"defaultAgent", "defaultModel", "timeout"}
	for name := range c.Providers {
		keys = append(keys, "providers."+name+".baseUrl", "providers."+name+".apiKey", "providers."+name+".apiKeyEnv")
	}
	for name := range c.Models {
		keys = append(keys, "models."+name+".provider", "models."+name+".name")
	}
	for name := range c.Agents {
		keys = append(keys, "agents."+name+".command", "agents."+name+".model", "agents."+name+".permission", "agents."+name+".sandbox.mode", "agents."+name+".timeout")
	}
	slices.Sort(keys)
	return words(keys...)
}
