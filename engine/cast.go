package engine

import (
	"context"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/budget"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/proc"
)

// Casting is who would play a role if its turn came now.
type Casting struct {
	Role    string
	Player  protocol.Player
	Agent   string   // as the user named it; "" if nobody is configured
	Command []string // as the user wrote it: a variable in it may be a secret
	Path    string   // of the program; "" if it is not installed
	Model   string   // provider and name, or what the agent's program calls it; "" if that is the program's own affair
	Timeout time.Duration
	// Problem is why the role could not be played; nil if nothing speaks against it.
	Problem *protocol.Error
}

// Cast finds who would play a role of a workflow. Nothing is started.
func (e *Engine) Cast(ctx context.Context, w protocol.Workflow, role string, o StepOptions) Casting {
	c, cmd := e.castProgram(ctx, w, role, w.Roles[role].Run, o)
	if c.Problem == nil && c.Player == protocol.PlayedByAgent {
		c.Model, c.Problem = e.modelFor(ctx, cmd, w.Name, role)
	}
	return c
}

// castProgram finds the program that would play a role.
// argv is that of a role that is a command, as far as it is known.
func (e *Engine) castProgram(ctx context.Context, w protocol.Workflow, role string, argv []string, o StepOptions) (Casting, command) {
	c := Casting{Role: role, Player: w.Roles[role].Player()}
	if w.Roles[role].HasChildren() {
		c.Agent = protocol.JoinAgent
		return c, command{}
	}
	if o.Scenario != "" {
		c.Player = protocol.PlayedByAgent
	}
	if c.Player == protocol.PlayedByPerson {
		c.Agent = protocol.PersonAgent
		return c, command{}
	}
	cmd, err := e.playerOf(ctx, o, w, role, argv)
	if err != nil {
		c.Problem = fault.Of(err)
		return c, cmd
	}
	if cmd.plain != nil {
		c.Agent, c.Command, c.Timeout = cmd.name, cmd.argv, cmd.timeout
		e.castCommand(&c)
		return c, cmd
	}
	c.Agent, c.Command, c.Timeout = cmd.name, cmd.written, cmd.timeout
	if c.Timeout == 0 && config.IsAdapter(cmd.argv[0]) {
		c.Timeout = config.AdapterTimeout
	}
	environ := e.Env
	for key, value := range cmd.env {
		environ = environ.With(key, value)
	}
	if c.Path, err = proc.LookPath(cmd.argv[0], e.Env.Dir, environ.Environ); err != nil {
		c.Problem = e.unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.argv[0], Err: err})
	}
	return c, cmd
}

// CheckFirst returns why the first role of a thread could not be played, if it
// could not: who is about to run it need not begin. The thread's directory has no
// symbolic links. What only the agent can judge,
// such as its model, is left to it. Errors are *protocol.Error.
func (e *Engine) CheckFirst(ctx context.Context, start protocol.Start, o StepOptions) error {
	e = e.configOnce()
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, start.Workflow)
	if err != nil {
		return wrongNode(start.Workflow, "workflow", err)
	}
	if err := runnable(w); err != nil {
		return err
	}
	first, err := moderator.Next(ctx, moderator.State{Workflow: w, Start: start})
	if err != nil {
		return fault.Of(err)
	}
	if first.Kind != moderator.Run {
		return nil
	}
	if c, _ := e.castProgram(ctx, w, first.Role, first.Command, o); c.Problem != nil {
		return c.Problem
	}
	_, err = e.Workplace(ctx, first.Role, start.Cwd, first.Location)
	return err
}

// modelFor is the model that an agent of ours would ask, or that the config names
// for another.
func (e *Engine) modelFor(ctx context.Context, cmd command, workflow, role string) (string, *protocol.Error) {
	c, err := e.Config(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	if !config.OwnsModels(cmd.argv[0]) {
		model, _, err := config.ExternalModel(c, cmd.argv[0], cmd.alias, workflow, role, e.Env)
		if err != nil {
			return "", fault.Of(err)
		}
		return model, nil
	}
	alias := modelFlag(cmd.argv)
	if alias == "" {
		alias = config.AgentModel(c, cmd.alias, workflow, role)
	}
	if alias == "" {
		return "", fault.Hinted(fault.New(protocol.CodeInvalid, "agent %q has no model: %s has no defaultModel", cmd.name, e.Dirs.Config()),
			"uwf config set defaultModel <alias of models>")
	}
	endpoint, err := config.ResolveModel(c, alias, e.Env)
	if err != nil {
		return "", fault.Of(err)
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

// Limits are those that a thread of a workflow begins with, own those that are said for
// it alone. Zero is no limit. Errors are *protocol.Error.
func (e *Engine) Limits(ctx context.Context, w protocol.Workflow, own protocol.Limits) (protocol.Limits, error) {
	l, err := e.limitsOf(ctx, w)
	if err != nil {
		return l, fault.Of(err)
	}
	return budget.With(l, budget.Said(own)), nil
}
