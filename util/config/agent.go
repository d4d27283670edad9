package config

import (
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// ResolveAgent is an agent of the config with its variables replaced, ready to
// be started. Errors are *protocol.Error (code invalid).
func ResolveAgent(c protocol.Config, alias string, e env.Env) (protocol.Agent, error) {
	a, ok := c.Agents[alias]
	if !ok {
		return protocol.Agent{}, invalid(hints(alias, keys(c.Agents)), "unknown agent alias %q: it is not in agents of config.yaml", alias)
	}
	use, at := user{env: e}, "agents."+alias+"."
	a.Command = use.value(a.Command, at+"command")
	a.Account = use.value(a.Account, at+"account")
	args := make([]string, len(a.Args))
	for i, arg := range a.Args {
		args[i] = use.value(arg, fmt.Sprintf("%sargs[%d]", at, i))
	}
	environ := make(map[string]string, len(a.Env))
	for _, name := range keys(a.Env) {
		environ[name] = use.value(a.Env[name], at+"env."+name)
	}
	a.Args, a.Env = args, environ
	if use.err != nil {
		return protocol.Agent{}, use.err
	}
	return a, nil
}
