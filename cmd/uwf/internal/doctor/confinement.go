package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

// confinement tells what holds the commands of models back on this machine.
func (x *examination) confinement(context.Context) {
	const area = "confinement"
	if x.Confinement == nil {
		return
	}
	text, system := x.Confinement()
	defer func() { x.access(area, system) }()
	if !system.Confines {
		x.warn(area, "uwf config set sandbox.mode required refuses commands then; or run uwf in a container",
			"commands of models cannot be confined here (%s)", text)
		return
	}
	x.ok(area, "commands of models are confined by %s", text)
}

// access tells what each agent of the config may do.
func (x *examination) access(area string, s config.System) {
	if x.config == nil {
		return
	}
	switch may := config.CommandAccess(*x.config, s) + config.Reaches(config.Network(*x.config, "", "", "")); {
	case config.CommandSandbox(*x.config).Mode == protocol.SandboxNone:
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
		if config.Sandbox(*x.config, alias).Mode == protocol.SandboxRequired && !s.Confines && x.playsAll([]string{alias}) {
			x.problem(area, "uwf config set "+plaintext.Word("agents."+alias+".sandbox.mode")+" auto; or run uwf in a container", "%s: %s", alias, may)
			continue
		}
		x.ok(area, "%s: %s", alias, may)
	}
}

func noCommands(b *protocol.BuiltinConfig) bool { return b == nil || len(b.AllowCommands) == 0 }
