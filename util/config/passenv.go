package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// Granted returns the variables that a config passes to a command role. proven contains those granted by the
// hash of its workflow, which determines the role; named contains the others, granted by a name that any
// workflow can use.
func Granted(c protocol.Config, workflow protocol.Hash, name, role string) (proven, named []string) {
	if c.Commands == nil {
		return nil, nil
	}
	all := c.Commands.PassEnv
	proven = slices.Clone(all[string(workflow)+"."+role])
	for _, variable := range slices.Concat(all[name], all[name+"."+role]) {
		if !slices.Contains(proven, variable) && !slices.Contains(named, variable) {
			named = append(named, variable)
		}
	}
	return proven, named
}

// Gets describes the variables passed to the commands of a workflow: a line for each role, and for each
// variable missing from e unless e is nil.
func Gets(c protocol.Config, workflow protocol.Hash, w protocol.Workflow, e *env.Env) (lines []string) {
	for _, role := range slices.Sorted(maps.Keys(w.Roles)) {
		if w.Roles[role].Player() == protocol.PlayedByCommand {
			lines = append(lines, gets(role, slices.Concat(Granted(c, workflow, w.Name, role)), e)...)
		}
	}
	return lines
}

// GetsAll is [Gets] for everything that a config grants.
func GetsAll(c protocol.Config, e *env.Env) (lines []string) {
	if c.Commands != nil {
		for _, key := range keys(c.Commands.PassEnv) {
			lines = append(lines, gets(key, c.Commands.PassEnv[key], e)...)
		}
	}
	return lines
}

func gets(who string, names []string, e *env.Env) (lines []string) {
	var has []string
	for _, name := range names {
		if e != nil && e.Get(name) == "" {
			lines = append(lines, who+": "+name+" is not set")
		} else {
			has = append(has, name)
		}
	}
	if len(has) > 0 {
		lines = append(lines, who+": gets "+strings.Join(has, ", "))
	}
	return lines
}

// passEnv checks the variables passed to commands.
func (k checker) passEnv() {
	if k.c.Commands == nil {
		return
	}
	for key, names := range k.c.Commands.PassEnv {
		at := k.at([]string{"commands", "passEnv", key})
		if strings.Trim(key, ". ") != key || key == "" {
			k.add(at, "write <workflow>.<role>, or <workflow>", "commands.passEnv has an invalid key")
		}
		for _, name := range names {
			if !isVariable(name) || strings.HasPrefix(strings.ToUpper(name), "UWF_") {
				k.add(at, "such as GH_TOKEN", "commands.passEnv.%s: %q cannot be passed", key, name)
			}
		}
	}
}
