package casting

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/suggest"
)

// Named checks that the agents which options name exist, before anything is
// started for them. Errors are *protocol.Error: CodeUsage for what is no command
// line, CodeNotFound for a program that is nowhere, CodeAgent for one that cannot
// be started.
func (r Caster) Named(ctx context.Context, o Wish) error {
	names := slices.Sorted(maps.Values(o.Agents))
	if o.Agent != "" {
		names = append(names, o.Agent)
	}
	for _, name := range slices.Compact(names) {
		c, err := r.Config(ctx)
		if err != nil {
			return fault.Of(err)
		}
		cmd, err := r.chooseAgent(c, name, "", "")
		if err != nil {
			return fault.Of(err)
		}
		environ := r.Env
		for key, value := range cmd.Env {
			environ = environ.With(key, value)
		}
		if _, err := proc.LookPath(cmd.Argv[0], r.Env.Dir, environ.Environ); err != nil {
			return r.Unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.Argv[0], Err: err})
		}
	}
	return nil
}

// nearAgents are hints at an alias of the config or an agent on PATH.
func (r Caster) nearAgents(ctx context.Context, name string) []string {
	installed := discover.OnPath(r.Env)
	known := installed
	if c, err := r.Config(ctx); err == nil {
		known = slices.Concat(slices.Sorted(maps.Keys(c.Agents)), known)
	}
	near := suggest.Nearest(name, known, 2)
	if len(near) == 0 {
		near = suggest.Nearest(protocol.AgentName(name), installed, 1)
	}
	return agentHints(near)
}

// nearPrograms are hints at another file of the directory, or at a program on
// PATH of that name.
func (r Caster) nearPrograms(cmd Command) []string {
	dir, base := filepath.Split(cmd.Written[0])
	var names []string
	if entries, err := os.ReadDir(filepath.Dir(cmd.Argv[0])); err == nil {
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	near := suggest.Nearest(base, names, 1)
	for i := range near {
		near[i] = dir + near[i]
	}
	if _, err := proc.LookPath(base, r.Env.Dir, r.Env.Environ); err == nil {
		near = append(near, base)
	}
	return agentHints(near)
}

func agentHints(names []string) []string {
	var hints []string
	for _, n := range names {
		hints = append(hints, "did you mean --agent "+plaintext.Word(n)+"?")
	}
	return hints
}
