package engine

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/proc"
)

// Casting is who would play a role if its turn came now.
type Casting struct {
	Role    string
	Agent   string   // as the user named it; "" if nobody is configured
	Command []string // as the user wrote it: a variable in it may be a secret
	Path    string   // of the program; "" if it is not installed
	Model   string   // provider and name, or what the agent's program calls it; "" if that is the program's own affair
	Timeout time.Duration
	// Problem is why the role could not be played; nil if nothing speaks against it.
	Problem *protocol.Error
}

// ourAgents are the programs that ask the models of the config.
func ourAgents() []string { return []string{"uwf-builtin", "uwf-react", "uwf-llm"} }

// Cast finds who would play a role of a workflow. Nothing is started.
func (e *Engine) Cast(ctx context.Context, workflow, role string, o StepOptions) Casting {
	c := Casting{Role: role}
	cmd, err := e.agentFor(ctx, o, workflow, role)
	if err != nil {
		c.Problem = coded(err)
		return c
	}
	c.Agent, c.Command, c.Timeout = cmd.name, cmd.written, cmd.timeout
	environ := e.Env
	for key, value := range cmd.env {
		environ = environ.With(key, value)
	}
	if c.Path, err = proc.LookPath(cmd.argv[0], e.Env.Dir, environ.Environ); err != nil {
		c.Problem = hinted(fail(protocol.CodeAgent, "%q, the program of agent %q, cannot be started: %v", cmd.argv[0], cmd.name, err),
			e.installHint(cmd))
		return c
	}
	c.Model, c.Problem = e.modelFor(ctx, cmd, workflow, role)
	return c
}

func (e *Engine) installHint(cmd command) string {
	if cmd.alias != "" {
		return "install it, or set agents." + cmd.alias + ".command in " + e.Dirs.Config()
	}
	return "put it on PATH, or name it with its path"
}

// modelFor is the model that an agent of ours would ask, or that the config names
// for another.
func (e *Engine) modelFor(ctx context.Context, cmd command, workflow, role string) (string, *protocol.Error) {
	c, err := e.Config(ctx)
	if err != nil {
		return "", coded(err)
	}
	program := strings.TrimSuffix(filepath.Base(cmd.argv[0]), ".exe")
	if !slices.Contains(ourAgents(), program) {
		return c.Agents[cmd.alias].Model, nil
	}
	alias := modelFlag(cmd.argv)
	if alias == "" {
		alias = config.AgentModel(c, cmd.alias, workflow, role)
	}
	if alias == "" {
		return "", hinted(fail(protocol.CodeInvalid, "agent %q has no model: %s has no defaultModel", cmd.name, e.Dirs.Config()),
			"uwf config set defaultModel <alias of models>")
	}
	endpoint, err := config.ResolveModel(c, alias, e.Env)
	if err != nil {
		return "", coded(err)
	}
	return endpoint.Provider + " " + endpoint.Model, nil
}

// modelFlag is the model that an agent of ours is told on its command line.
func modelFlag(argv []string) string {
	for i, arg := range argv {
		if value, ok := strings.CutPrefix(arg, "--model="); ok {
			return value
		}
		if arg == "--model" && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

// Limits are those that a thread of a workflow begins with. Zero is no limit.
// Errors are *protocol.Error.
func (e *Engine) Limits(ctx context.Context, w protocol.Workflow) (protocol.Limits, error) {
	l, err := e.limitsOf(ctx, w)
	if err != nil {
		return l, coded(err)
	}
	return l, nil
}
