package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

// atOnce is how many agents are asked at the same time.
const atOnce = 4

// candidate is an agent to ask.
type candidate struct {
	command string
	args    []string // its own in the config
	aliases []string // in the config; empty: it is only installed
}

// agents asks the agents of the config, and those that are installed beside, who
// they are and what they drive.
func (x *examination) agents(ctx context.Context) {
	all := x.candidates()
	if len(all) == 0 {
		x.note("agents", "go install "+protocol.ModulePath+"/cmd/uwf-builtin@latest", "no agent is installed (no uwf-* program on PATH), and none is in the config")
		return
	}
	seen := make([]discover.Agent, len(all))
	var group sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, c := range all {
		group.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			seen[i] = discover.Ask(ctx, c.command, c.args, x.Env)
		})
	}
	group.Wait()
	for i, agent := range seen {
		x.agent(agent, all[i].aliases)
	}
	x.asRoot()
	if x.AskAgent == nil || x.config == nil || x.config.DefaultAgent == "" || x.asksModel() { // which is asked itself
		return
	}
	p := x.AskAgent(ctx, x.config.DefaultAgent)
	if p.OK {
		x.ok("agents", "%s answers", x.config.DefaultAgent)
		return
	}
	x.problem("agents", cmp.Or(strings.Join(p.Hints, "; "), "uwf setup"), "%s does not answer: %s", x.config.DefaultAgent, p.Error)
}

// asRoot tells of the agents whose program refuses to run as root.
func (x *examination) asRoot() {
	if !x.Root || x.config == nil {
		return
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
		a := x.config.Agents[alias]
		sandbox := cmp.Or(a.Env["IS_SANDBOX"], x.Env.Get("IS_SANDBOX"))
		if filepath.Base(a.Command) != "uwf-claude-code" || sandbox != "" || a.Permission != "" && a.Permission != "full" {
			continue
		}
		report, key := x.warn, plaintext.Word("agents."+alias)
		if x.playsAll([]string{alias}) {
			report = x.problem
		}
		report("agents", "if this machine is there for that: uwf config set "+key+".env.IS_SANDBOX 1; else uwf config set "+key+".permission edits", "%s: claude refuses to run as root with the permission full", alias)
	}
}

// candidates are the agents to ask: those of the config by alias, then the
// others on PATH by name.
func (x *examination) candidates() []candidate {
	var all []candidate
	known := map[string]bool{}
	if x.config != nil {
		for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
			a, err := config.ResolveAgent(*x.config, alias, x.Env)
			if err != nil {
				report := x.warn
				if x.playsAll([]string{alias}) {
					report = x.problem
				}
				report("agents", remedy(err, "correct agents."+alias+" in "+x.Dirs.Config()), "%s: %v", alias, err)
				continue
			}
			known[filepath.Base(a.Command)] = true
			same := slices.IndexFunc(all, func(c candidate) bool { return c.command == a.Command && slices.Equal(c.args, a.Args) })
			if same < 0 {
				all, same = append(all, candidate{command: a.Command, args: a.Args}), len(all)
			}
			all[same].aliases = append(all[same].aliases, alias)
		}
	}
	for _, name := range discover.OnPath(x.Env) {
		if !known[name] {
			all = append(all, candidate{command: name})
		}
	}
	return all
}

// agent reports what one agent said.
func (x *examination) agent(a discover.Agent, aliases []string) {
	name := a.Command
	if len(aliases) > 0 && !slices.Equal(aliases, []string{a.Command}) {
		name = fmt.Sprintf("%s (%s)", strings.Join(aliases, ", "), a.Command)
	}
	if a.Err != nil {
		report := x.warn
		if x.playsAll(aliases) {
			report = x.problem
		}
		report("agents", installing(a.Command), "%s: %v", name, a.Err)
		return
	}
	text := strings.TrimSpace(name + " " + a.Version)
	if a.Check == nil {
		x.ok("agents", "%s", text)
		return
	}
	if a.Check.Program != "" {
		text += strings.TrimRight(": drives "+a.Check.Program+" "+a.Check.Version, " ")
	}
	if len(a.Check.Problems) == 0 {
		x.ok("agents", "%s", text)
		return
	}
	for _, p := range a.Check.Problems {
		report := x.warn
		switch {
		case len(aliases) == 0: // it is installed, but nobody asks for it
			report = x.note
		case x.playsAll(aliases):
			report = x.problem
		}
		report("agents", p.Do, "%s: %s", text, p.What)
	}
}

// playsAll reports whether the roles that nothing else is said of are played by one of
// these: what stops it stops every step.
func (x *examination) playsAll(aliases []string) bool {
	return x.config != nil && x.config.DefaultAgent != "" && slices.Contains(aliases, x.config.DefaultAgent)
}

// installing is how a missing command comes here.
func installing(command string) string {
	name := path.Base(filepath.ToSlash(command))
	if strings.HasPrefix(name, protocol.AgentPrefix) {
		return "go install " + protocol.ModulePath + "/cmd/" + name + "@latest, if it is one of ours; else put it on PATH"
	}
	return "put it on PATH, or correct its command in the config"
}
