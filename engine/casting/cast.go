package casting

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/oscommand"
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
func (r Caster) Cast(ctx context.Context, w protocol.Workflow, role string, o Wish) Casting {
	c, cmd := r.Program(ctx, w, role, w.Roles[role].Run, o)
	if c.Problem == nil && c.Player == protocol.PlayedByAgent {
		c.Model, c.Problem = r.modelFor(ctx, cmd, w.Name, role)
	}
	return c
}

// Program finds the program that would play a role.
// argv is that of a role that is a command, as far as it is known.
func (r Caster) Program(ctx context.Context, w protocol.Workflow, role string, argv []string, o Wish) (Casting, Command) {
	c := Casting{Role: role, Player: w.Roles[role].Player()}
	if w.Roles[role].HasChildren() {
		c.Agent = protocol.JoinAgent
		return c, Command{}
	}
	if o.Scenario != "" {
		c.Player = protocol.PlayedByAgent
	}
	if c.Player == protocol.PlayedByPerson {
		c.Agent = protocol.PersonAgent
		return c, Command{}
	}
	cmd, err := r.Player(ctx, o, w, role, argv)
	if err != nil {
		c.Problem = fault.Of(err)
		return c, cmd
	}
	if cmd.Plain != nil {
		c.Agent, c.Command, c.Timeout = cmd.Name, cmd.Argv, cmd.Timeout
		r.castCommand(&c)
		return c, cmd
	}
	c.Agent, c.Command, c.Timeout = cmd.Name, cmd.Written, cmd.Timeout
	if c.Timeout == 0 && config.IsAdapter(cmd.Argv[0]) {
		c.Timeout = config.AdapterTimeout
	}
	environ := r.Env
	for key, value := range cmd.Env {
		environ = environ.With(key, value)
	}
	if c.Path, err = proc.LookPath(cmd.Argv[0], r.Env.Dir, environ.Environ); err != nil {
		c.Problem = r.Unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.Argv[0], Err: err})
	}
	return c, cmd
}

// modelFor is the model that an agent of ours would ask, or that the config names
// for another.
func (r Caster) modelFor(ctx context.Context, cmd Command, workflow, role string) (string, *protocol.Error) {
	c, err := r.Config(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	if !config.OwnsModels(cmd.Argv[0]) {
		model, _, err := config.ExternalModel(c, cmd.Argv[0], cmd.Alias, workflow, role, r.Env)
		if err != nil {
			return "", fault.Of(err)
		}
		return model, nil
	}
	alias := modelFlag(cmd.Argv)
	if alias == "" {
		alias = config.AgentModel(c, cmd.Alias, workflow, role)
	}
	if alias == "" {
		return "", fault.Hinted(fault.New(protocol.CodeInvalid, "agent %q has no model: %s has no defaultModel", cmd.Name, r.Dirs.Config()),
			"uwf config set defaultModel <alias of models>")
	}
	endpoint, err := config.ResolveModel(c, alias, r.Env)
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

// castCommand finds the program of a role that is a command, as far as it is known
// before its words are rendered: one of the workspace may still be made.
func (r Caster) castCommand(c *Casting) {
	program := c.Command[0]
	if strings.Contains(program, "{{") || filepath.Base(program) != program {
		return
	}
	path, err := proc.LookPath(program, r.Env.Dir, r.Env.Environ)
	if err != nil {
		c.Problem = oscommand.CannotStart(c.Role, &agentproc.NotFoundError{Command: program, Err: err})
		return
	}
	c.Path = path
}
