package config

import (
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Access says in a few words what an agent may do: who may run what, and write
// where. confined is whether this system can confine programs. Of a command that is
// none of ours nobody knows.
func Access(c protocol.Config, alias, command string, e env.Env, confined bool) string {
	a := c.Agents[alias]
	name := strings.TrimSuffix(filepath.Base(command), ".exe")
	for key, value := range a.Env {
		e = e.With(key, value)
	}
	switch {
	case name == "uwf-llm":
		return "asks only"
	case name == "uwf-mock":
		return "plays a script"
	case ownsModels(command):
		return builtinAccess(c.Builtin, a.Permission, e, confined)
	case !strings.HasPrefix(name, protocol.AgentPrefix):
		return "what the program does: uwf does not confine it"
	}
	if a.Permission == "readonly" && name != "uwf-exec" {
		return "reads" + extra(a, confined)
	}
	if a.Permission == "edits" && name != "uwf-exec" {
		return "changes files in the directory" + extra(a, confined)
	}
	return "runs anything" + extra(a, confined)
}

// extra says whether a program is confined.
func extra(a protocol.Agent, confined bool) string {
	switch setting := protocol.Confining(a.Confine, a.Permission); {
	case setting == protocol.ConfineOff && (a.Permission == "" || a.Permission == "bypass"):
		return ", writes anywhere: confine is off"
	case setting == protocol.ConfineOff:
		return ", as far as the program holds itself back"
	case !confined && setting == protocol.ConfineRequired:
		return "; does not start: it cannot be confined here"
	case !confined:
		return ", writes anywhere: it cannot be confined here"
	case len(a.AllowWrite) > 0:
		return ", writes in the directory and " + strings.Join(a.AllowWrite, ", ")
	}
	return ", writes in the directory"
}

// builtinAccess is of our own agents with tools.
func builtinAccess(b *protocol.BuiltinConfig, permission string, e env.Env, confined bool) string {
	if b == nil {
		b = &protocol.BuiltinConfig{}
	}
	switch permission {
	case "readonly":
		return "reads in the directory"
	case "edits":
		return "changes files in the directory"
	}
	runs := "runs nothing"
	if len(b.AllowCommands) > 0 {
		runs = "runs " + strings.Join(b.AllowCommands, ", ")
	}
	if e.Get("UWF_BUILTIN_ALLOW_SHELL") == "1" {
		runs = "runs anything"
	}
	switch {
	case runs == "runs nothing":
		return "changes files in the directory, " + runs
	case b.Confine == protocol.ConfineOff:
		return runs + ", writes anywhere: builtin.confine is off"
	case !confined && b.Confine == protocol.ConfineRequired:
		return "changes files in the directory, runs nothing: commands cannot be confined here"
	case !confined:
		return runs + ", writes anywhere: commands cannot be confined here"
	}
	return runs + ", writes in the directory"
}
