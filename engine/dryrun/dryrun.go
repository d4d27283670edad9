// Package dryrun plans a run without storing or starting anything: who would play each role, what it may
// cost, and what would stop it.
package dryrun

import (
	"cmp"
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// Run is the run to plan.
type Run struct {
	Definition workflow.Definition
	Start      protocol.Start // Prompt and Cwd
	Given      map[string]any // inputs; the others get their defaults
	Limits     protocol.Limits
	Step       engine.StepOptions
	Env        env.Env       // of the process, without .env
	System     config.System // what this machine can enforce
	// Hints returns the hints of an error in this front end.
	Hints func(*protocol.Error) []string
}

// Plan is the result of [Of]: the JSON object of uwf run --dry-run.
type Plan struct {
	DryRun   bool            `json:"dryRun"`
	Workflow string          `json:"workflow"` // name
	Cwd      string          `json:"cwd"`
	Inputs   map[string]any  `json:"inputs,omitempty"`
	First    First           `json:"first"`
	Roles    []Role          `json:"roles"`
	Limits   protocol.Limits `json:"limits"` // 0: none
	Ready    bool            `json:"ready"`
	// Commands are the commands of the workflows that this workflow runs, one per line.
	Commands []string `json:"commands,omitempty"`
	// Gets describes the variables of commands.passEnv that its own commands get, or that are not set.
	Gets []string `json:"gets,omitempty"`

	Code protocol.Code `json:"-"` // of the first problem; "": none
}

// First is the first step.
type First struct {
	Role   string `json:"role"`
	Prompt string `json:"prompt"`
	Cwd    string `json:"cwd"`
	// Problem is why the role cannot work in Cwd.
	Problem protocol.NullString `json:"problem,omitempty"`
	Hints   []string            `json:"hints,omitempty"`
}

// Role is a role with its player.
type Role struct {
	Role    string              `json:"role"`
	Player  protocol.Player     `json:"player,omitempty"` // "": an agent
	Agent   protocol.NullString `json:"agent"`
	Command []string            `json:"command"`
	Env     map[string]string   `json:"env,omitempty"` // of a command
	Path    protocol.NullString `json:"path"`
	Model   protocol.NullString `json:"model"`
	Timeout protocol.NullString `json:"timeout"`
	May     protocol.NullString `json:"may"` // what it can run and write
	// Worst is the most the role can cost.
	Worst   engine.Worst        `json:"worst"`
	Problem protocol.NullString `json:"problem"`
	Hints   []string            `json:"hints,omitempty"`
}

// Declared returns the inputs of a workflow that is not stored.
func Declared(def workflow.Definition) map[string]inputs.Declared {
	declared := map[string]inputs.Declared{}
	for name, i := range def.Inputs {
		declared[name] = inputs.Declared{Schema: def.InputSchemas[name], Default: i.Default, Description: i.Description}
	}
	return declared
}

// Agents returns the roles of a workflow that agents play.
func Agents(def workflow.Definition) []string {
	return slices.DeleteFunc(flow.Roles(def.Workflow), func(role string) bool {
		return def.Roles[role].Player() != protocol.PlayedByAgent
	})
}

// Fill completes the given inputs of a stored workflow in its start node.
func Fill(ctx context.Context, e *engine.Engine, start *protocol.Start, given map[string]any) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, start.Workflow)
	if err != nil {
		return err
	}
	declared, err := engine.Declared(ctx, e.Reader.Store, w)
	if err == nil {
		start.Inputs, err = inputs.Fill(ctx, declared, given)
	}
	return err
}

// Check refuses a run of a stored workflow that could not make its first step or whose cost would be unknown.
func Check(ctx context.Context, e *engine.Engine, start protocol.Start, l protocol.Limits, o engine.StepOptions) error {
	if err := e.CheckFirst(ctx, start, o); err != nil {
		return err
	}
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, start.Workflow)
	if err == nil {
		err = e.CheckBudget(ctx, w, l, o)
	}
	if err != nil {
		return err
	}
	return e.Casting().Named(ctx, o.Choices())
}

// Of plans a run. Whatever would stop it is in the plan; an error means that there is no plan. e must use the
// project config for the run's directory.
func Of(ctx context.Context, e *engine.Engine, c *catalog.Catalog, run Run) (Plan, error) {
	def := run.Definition
	var err error
	if run.Start.Inputs, err = inputs.Fill(ctx, Declared(def), run.Given); err != nil {
		return Plan{}, err
	}
	p := Plan{DryRun: true, Workflow: def.Workflow.Name, Cwd: run.Start.Cwd, Inputs: run.Start.Inputs, Ready: true}
	state := moderator.State{Workflow: def.Workflow, Start: run.Start, Artifacts: e.Reader.Dirs.Artifacts("x")}
	first, err := moderator.Next(ctx, state)
	if err != nil {
		return p, &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}
	}
	p.First = First{Role: first.Role, Prompt: first.Prompt, Cwd: p.Cwd}
	if first.Kind == moderator.Run {
		p.place(ctx, e, first, run)
	}
	if p.Limits, err = e.Reader.Limits(ctx, def.Workflow, run.Limits); err != nil {
		return p, err
	}
	settings, err := e.Reader.Config(ctx)
	if err != nil {
		return p, err
	}
	h, err := c.Hash(ctx, def)
	if err != nil {
		return p, err
	}
	if p.Commands, err = c.UsedCommands(ctx, settings, def, e.Reader.Env); err != nil {
		return p, err
	}
	p.Gets = config.Gets(settings, h, def.Workflow, &e.Reader.Env)
	for _, role := range flow.Roles(def.Workflow) {
		cast := e.Casting().Cast(ctx, def.Workflow, role, run.Step.Choices())
		if cast.Problem == nil && cast.Player == protocol.PlayedByAgent {
			cast.Problem = run.lacking(ctx, settings, cast)
		}
		p.add(settings, cast, run)
		planned := &p.Roles[len(p.Roles)-1]
		planned.Worst = e.Casting().Worst(ctx, def.Workflow, p.Limits, cast)
		if cast.Player == protocol.PlayedByCommand {
			start := state.Start
			if _, inGraph := def.Graph[role]; !inGraph { // the prompt of a part is not known
				start.Prompt = "{{" + protocol.PromptVariable + "}}"
			}
			planned.Command, planned.Env = moderator.KnownCommand(def.Roles[role], start)
		}
	}
	return p, e.CheckBudget(ctx, def.Workflow, run.Limits, run.Step)
}

// lacking returns the error of an agent whose program is not installed, as the agent itself
// reports it.
func (run Run) lacking(ctx context.Context, settings protocol.Config, c engine.Casting) *protocol.Error {
	around := run.Env
	if agent, err := config.ResolveAgent(settings, c.Agent, run.Env); err == nil {
		for name, value := range agent.Env {
			around = around.With(name, value)
		}
	}
	answer := discover.Ask(ctx, c.Path, c.Command[1:], around)
	if answer.Check == nil || answer.Check.Program != "" || len(answer.Check.Problems) == 0 {
		return nil
	}
	p := answer.Check.Problems[0]
	return &protocol.Error{Code: protocol.CodeAgent, Message: plaintext.Line(p.What), Hints: []string{plaintext.Line(p.Do)}}
}

// place finds the directory of the first step.
func (p *Plan) place(ctx context.Context, e *engine.Engine, first moderator.Decision, run Run) {
	dir, err := e.Workplace(ctx, first.Role, p.Cwd, first.Location)
	if err == nil {
		p.First.Cwd = dir
		return
	}
	why := fault.Of(err)
	p.First.Cwd, p.First.Problem, p.First.Hints = first.Location, protocol.NullString(why.Message), run.Hints(why)
	p.Ready, p.Code = false, why.Code
}

// add adds a role.
func (p *Plan) add(settings protocol.Config, c engine.Casting, run Run) {
	role := Role{Role: c.Role, Agent: protocol.NullString(c.Agent), Command: c.Command,
		Path: protocol.NullString(c.Path), Model: protocol.NullString(c.Model)}
	if role.Command == nil {
		role.Command = []string{}
	}
	switch {
	case c.Player != protocol.PlayedByAgent:
		role.Player = c.Player
		if c.Player == protocol.PlayedByCommand {
			reaches := config.Reaches(config.Network(settings, "", p.Workflow, c.Role))
			role.May = protocol.NullString(config.CommandAccess(settings, run.System) + reaches)
		}
	case len(c.Command) > 0:
		reaches := config.Reaches(config.Network(settings, c.Agent, p.Workflow, c.Role))
		role.May = protocol.NullString(config.Access(settings, c.Agent, c.Command, run.Env, run.System) + reaches)
	}
	if c.Timeout > 0 {
		role.Timeout = protocol.NullString(protocol.Span(c.Timeout))
	}
	if c.Problem != nil {
		role.Problem, role.Hints = protocol.NullString(c.Problem.Message), run.Hints(c.Problem)
		if p.Ready {
			p.Code = c.Problem.Code
		}
		p.Ready = false
	}
	p.Roles = append(p.Roles, role)
}

// Program returns the program that would be started, if it is known.
func (r Role) Program() string {
	switch {
	case r.Player != "" && r.Player != protocol.PlayedByCommand:
		return "-"
	case r.Player == protocol.PlayedByCommand && r.Path == "" && r.Problem == "":
		return r.Command[0]
	}
	return string(cmp.Or(r.Path, "not found"))
}

// Runs returns the command line of a command's role, else "".
func (r Role) Runs() string {
	if r.Player != protocol.PlayedByCommand {
		return ""
	}
	return plaintext.Literal(moderator.CommandLine(r.Command, r.Env))
}

// WorstText describes the maximum cost of a role.
func WorstText(w engine.Worst) string {
	visits := "any number of steps"
	if w.Visits > 0 {
		visits = render.Count(w.Visits, "step")
	}
	switch {
	case w.CostUSD != nil:
		return visits + ", " + protocol.Dollars(*w.CostUSD)
	case w.Tokens != nil:
		return visits + ", " + view.Thousands(*w.Tokens) + " tokens"
	}
	return visits + ", any cost"
}

// System returns what this machine can enforce for a program.
func System(exe string) config.System {
	return SystemOf(box.Diagnose(exe))
}

// SystemOf is [System] with the result of [box.Diagnose].
func SystemOf(d box.Diagnosis) config.System {
	return config.System{Confines: confine.Level() > 0, Sockets: confine.CanDenySockets(), Namespaces: d.Works()}
}
