package setup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// The words of --commands, beside a list of programs.
const (
	commandsAll  = "all"
	commandsNone = "none"
)

// editsOnly is the permission of an agent that runs no commands.
const editsOnly = "edits"

// programs is what --commands means for our own agents: the programs that they may run.
func programs(commands string) []string {
	switch commands {
	case commandsAll:
		return []string{config.AnyProgram}
	case commandsNone:
		return []string{}
	}
	return strings.FieldsFunc(commands, func(r rune) bool { return r == ',' || r == ' ' })
}

// checkCommands refuses what is neither a word nor a list of programs.
func checkCommands(commands string) error {
	if commands == "" || len(programs(commands)) > 0 && !strings.ContainsAny(commands, "*/\\'\"") || commands == commandsNone {
		return nil
	}
	return &protocol.Error{
		Code: protocol.CodeUsage, Message: fmt.Sprintf("--commands %q is neither all, none nor a list of programs", commands),
		Hints: []string{"--commands all", "--commands none", "--commands go,git"},
	}
}

// listed is builtin.allowCommands as it is asked for; ok is false if nobody asks, or no
// agent of ours is concerned.
func (s *Setup) listed(a Answers) (_ []any, ok bool) {
	if a.Commands == "" || !s.asksModels(s.concerned(a)) {
		return nil, false
	}
	out := []any{} // as the config's editor takes it
	for _, program := range programs(a.Commands) {
		out = append(out, program)
	}
	return out, true
}

// current is --commands as the config says it for some agents.
func (s *Setup) current(agents []string) string {
	if s.asksModels(agents) {
		switch b := s.old.Builtin; {
		case b == nil || len(b.AllowCommands) == 0:
			return commandsNone
		case slices.Contains(b.AllowCommands, config.AnyProgram):
			return commandsAll
		default:
			return strings.Join(b.AllowCommands, ",")
		}
	}
	for _, name := range agents {
		if p := s.old.Agents[name].Permission; p == editsOnly || p == "read-only" {
			return commandsNone
		}
	}
	return commandsAll
}

// asksModels reports whether one of some agents asks a model of the config.
func (s *Setup) asksModels(agents []string) bool {
	return slices.ContainsFunc(agents, func(name string) bool { return config.OwnsModels(s.program(name)) })
}

// program is what an agent is or will be started by.
func (s *Setup) program(name string) string {
	if a, known := s.old.Agents[name]; known {
		return a.Command
	}
	return protocol.AgentName(name)
}

// commands asks whether the agents may run commands.
func (d dialog) commands(ctx context.Context, a *Answers) error {
	if a.Commands != "" {
		return nil
	}
	agents := a.agents()
	fallback := commandsAll
	switch {
	case d.known(agents):
		fallback = d.current(agents)
	case !d.Confined:
		fallback = commandsNone
	}
	where := "They can write only in the directory where it works."
	if !d.Confined {
		where = "Nothing on this machine keeps them from writing elsewhere."
	}
	d.say("\nMay it run commands, such as your tests? %s", where)
	d.say("   all   any program")
	if d.asksModels(agents) {
		d.say("   LIST  only these programs, such as go,git,npm")
	}
	d.say("   none  it reads and changes files, and says what should be run")
	for {
		answer, err := d.person.Line(ctx, "Commands ["+fallback+"]: ")
		if err != nil {
			return err
		}
		if answer == "" {
			answer = fallback
		}
		if answer == fallback && d.known(agents) {
			return nil // as it is
		}
		if len(programs(answer)) > 0 && answer != commandsAll && !d.asksModels(agents) {
			d.say("%s cannot be held to a list: all or none.", strings.Join(agents, ", "))
			continue
		}
		if err := checkCommands(answer); err != nil {
			d.say("Type all, none, or the names of programs with commas between them.")
			continue
		}
		a.Commands = answer
		return nil
	}
}

// known reports whether the config says something of these agents already.
func (s *Setup) known(agents []string) bool {
	return !slices.ContainsFunc(agents, func(name string) bool { _, known := s.old.Agents[name]; return !known })
}

// concerned are the agents for which --commands is said: those that are named with it,
// else all.
func (s *Setup) concerned(a Answers) []string {
	if names := a.agents(); len(names) > 0 {
		return names
	}
	return slices.Sorted(maps.Keys(s.old.Agents))
}

// permissions are the changes that --commands makes to agents that drive programs: of
// those programs only all or none can be asked.
func (s *Setup) permissions(a Answers) []change {
	var out []change
	for _, name := range s.concerned(a) {
		agent, known := s.old.Agents[name]
		if !known {
			continue // written with it, see agentMap
		}
		if !config.IsAdapter(agent.Command) || !config.HeedsPermission(agent.Command) {
			continue
		}
		switch {
		case a.Commands == commandsAll && agent.Permission != "":
			out = append(out, change{"agents." + quoted(name) + ".permission", "full"})
		case a.Commands != commandsAll && (agent.Permission == "" || agent.Permission == "full"):
			out = append(out, change{"agents." + quoted(name) + ".permission", editsOnly})
		}
	}
	return out
}
