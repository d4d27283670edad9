package cliagent

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// check reports the program: where it is, its version, and what is wrong with it.
// It starts the program only to ask for its version, if that is not known, and whether somebody is
// logged in.
func (s *steps) check(ctx context.Context) protocol.AgentCheck {
	a, around := s.adapter, runenv.Of(ctx)
	if a.Commanded {
		a.Program, a.Probe.None = s.extra[0], true
	}
	remembered := ""
	if around.Dirs.Home != "" {
		remembered = filepath.Join(around.Dirs.Sessions(), protocol.AgentName(a.Name))
	}
	p, err := find(ctx, a, around.Env, remembered)
	version := ParseVersion(p.Version)
	found := protocol.AgentCheck{Program: p.Path, Version: version.String(), Problems: []protocol.AgentProblem{}}
	for _, f := range a.Probe.Flaws {
		if f.in(version) {
			found.Problems = append(found.Problems, protocol.AgentProblem{What: a.Program + " " + version.String() + ": " + f.Text, Do: a.Install})
		}
	}
	if err == nil && a.Probe.LoggedIn != nil && version.AtLeast(a.Probe.Since) {
		found.Problems = append(found.Problems, a.loggedOut(ctx, p.Path, around)...)
	}
	if err == nil && !a.Probe.None && !version.Known() {
		found.Problems = append(found.Problems, protocol.AgentProblem{
			What: p.Path + " does not say its version: it may be another program of that name", Do: "start it by hand with --version; " + binVariable(a.Name) + " names another one",
		})
	}
	if problem, ok := errors.AsType[*Error](err); ok {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: problem.Text, Do: problem.Hint})
	} else if err != nil {
		found.Problems = append(found.Problems, protocol.AgentProblem{What: err.Error()})
	}
	return found
}

// loggedOut says what the program lacks to reach its model: a login, or a key of a provider of the user's own.
func (a Adapter) loggedOut(ctx context.Context, path string, around *runenv.Run) []protocol.AgentProblem {
	if a.OwnKey != nil {
		switch variable, own := a.OwnKey(around.Env.Get); {
		case own && (variable == "" || hasKey(ctx, around, []string{variable})):
			return nil
		case own:
			return []protocol.AgentProblem{{
				What: variable + " is not set: " + a.Program + " takes the key of its model provider from it",
				Do:   "export " + variable + "=KEY",
			}}
		}
	}
	if hasKey(ctx, around, a.Logins) {
		return nil
	}
	if _, err := ask(ctx, path, a.Probe.LoggedIn, a, around.Env); errors.As(err, new(*statusError)) {
		return []protocol.AgentProblem{{What: "nobody is logged in to " + a.Program, Do: a.Login}}
	}
	return nil
}

// hasKey reports whether the program is given a key, by the environment or by an
// agent of the config: then nobody needs to be logged in.
func hasKey(ctx context.Context, around *runenv.Run, variables []string) bool {
	names := around.Env.Environ
	if around.Dirs.Home != "" {
		c, _ := config.Load(ctx, around.Dirs.Config(), around.Env) // what is wrong with it others say
		for _, agent := range c.Agents {
			names = slices.AppendSeq(slices.Clip(names), maps.Keys(agent.Env))
		}
	}
	return slices.ContainsFunc(names, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return matches(name, variables)
	})
}
