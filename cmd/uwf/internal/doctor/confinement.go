package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/box"
)

// confinement tells what holds the commands of models back on this machine.
func (x *examination) confinement(context.Context) {
	const area = "confinement"
	if x.Confinement == nil {
		return
	}
	text, system, lacks := x.Confinement()
	defer func() { x.access(area, system, lacks) }()
	switch {
	case system.Namespaces:
		x.ok(area, "commands are confined by %s", text)
	case system.Confines:
		x.warn(area, lacks.Do, "commands are confined by %s; without namespaces: %s", text, lacks.Why)
	default:
		x.warn(area, "uwf config set sandbox.mode required refuses commands then; or run uwf in a container",
			"commands cannot be confined here (%s; without namespaces: %s)", text, lacks.Why)
	}
}

// access tells what each agent of the config may do.
func (x *examination) access(area string, s config.System, lacks box.Diagnosis) {
	if x.config == nil {
		return
	}
	mode := config.CommandSandbox(*x.config).Mode
	switch may := config.CommandAccess(*x.config, s) + config.Reaches(config.Network(*x.config, "", "", "")); {
	case mode == protocol.SandboxRequired && !s.Namespaces:
		x.problem(area, remedyOf(lacks, "commands.sandbox.mode"), "roles that are commands: %s", may)
	case mode == protocol.SandboxLandlock && !s.Confines:
		x.problem(area, "uwf config set commands.sandbox.mode auto; or run uwf in a container", "roles that are commands: %s", may)
	case mode == protocol.SandboxNone:
		x.note(area, "uwf config set commands.sandbox.mode auto holds them back", "roles that are commands: %s", may)
	default:
		x.ok(area, "roles that are commands: %s", may)
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
		a := x.config.Agents[alias]
		argv := append([]string{a.Command}, a.Args...)
		may := config.Access(*x.config, alias, argv, x.Env, s) + config.Reaches(config.Network(*x.config, alias, "", ""))
		if s.Confines && config.IsUnknown(*x.config, alias, argv) {
			x.warn(area, "uwf config set "+plaintext.Word("agents."+alias+".sandbox.mode")+" auto confines it; none allows that", "%s: %s", alias, may)
			continue
		}
		if config.OwnsModels(a.Command) && a.Permission == "" && noCommands(x.config.Builtin) && !config.AnyCommand(x.config.Builtin, x.Env) && a.Command != "uwf-llm" {
			x.note(area, "uwf setup --commands all, or a list such as go,git", "%s: %s", alias, may)
			continue
		}
		mode := config.Sandbox(*x.config, alias).Mode
		if mode == protocol.SandboxLandlock && !s.Confines && x.playsAll([]string{alias}) {
			x.problem(area, "uwf config set "+plaintext.Word("agents."+alias+".sandbox.mode")+" auto; or run uwf in a container", "%s: %s", alias, may)
			continue
		}
		if mode == protocol.SandboxRequired && !s.Namespaces && x.playsAll([]string{alias}) {
			x.problem(area, remedyOf(lacks, "agents."+alias+".sandbox.mode"), "%s: %s", alias, may)
			continue
		}
		x.ok(area, "%s: %s", alias, may)
	}
}

func noCommands(b *protocol.BuiltinConfig) bool { return b == nil || len(b.AllowCommands) == 0 }

// remedyOf is what to do where programs must have namespaces: get them, or ask for less.
func remedyOf(lacks box.Diagnosis, key string) string {
	less := "uwf config set " + plaintext.Word(key) + " landlock accepts less"
	if lacks.Do == "" {
		return less
	}
	return lacks.Do + "; or " + less
}
