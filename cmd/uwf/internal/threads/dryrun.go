package threads

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// planOutput answers run --dry-run.
type planOutput struct {
	DryRun   bool            `json:"dryRun"`
	Workflow string          `json:"workflow"` // name
	Cwd      string          `json:"cwd"`
	Inputs   map[string]any  `json:"inputs,omitempty"`
	First    planFirst       `json:"first"`
	Roles    []planRole      `json:"roles"`
	Limits   protocol.Limits `json:"limits"` // 0: none
	Ready    bool            `json:"ready"`
	// Commands are those of the workflows that it runs, a line each.
	Commands []string `json:"commands,omitempty"`
	graph    diagram.Graph
}

// planFirst is the first step.
type planFirst struct {
	Role   string `json:"role"`
	Prompt string `json:"prompt"`
	Cwd    string `json:"cwd"`
	// Problem is why the role may not work there.
	Problem *string  `json:"problem,omitempty"`
	Hints   []string `json:"hints,omitempty"`
}

// planRole is who would play a role.
type planRole struct {
	Role    string          `json:"role"`
	Player  protocol.Player `json:"player,omitempty"` // unless it is an agent
	Agent   *string         `json:"agent"`
	Command []string        `json:"command"`
	Path    *string         `json:"path"`
	Model   *string         `json:"model"`
	Timeout *string         `json:"timeout"`
	May     *string         `json:"may"` // run, and write where
	// Worst is what the role may cost if everything that can go wrong does.
	Worst   casting.Worst `json:"worst"`
	Problem *string       `json:"problem"`
	Hints   []string      `json:"hints,omitempty"`
}

// dryRun shows what run would do. Nothing is stored or started.
func (a Commands) dryRun(ctx context.Context, c *ucli.Context, o engine.StepOptions, l protocol.Limits) error {
	prompt, err := a.taskText(c)
	if err != nil {
		return err
	}
	cwd, err := a.workDir(c.String("cwd"))
	if err != nil {
		return err
	}
	def, err := a.Workflows().Definition(ctx, c.Args().First())
	if err != nil {
		return err
	}
	err = agentsByRole(c.StringSlice("agent"), func() (protocol.Workflow, error) { return def.Workflow, nil }, &o)
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err == nil {
		e, err = e.InProject(cwd)
	}
	if err != nil {
		return err
	}
	given, err := a.inputs(ctx, c, declaredBy(def))
	if err != nil {
		return err
	}
	p := planOutput{DryRun: true, Workflow: def.Workflow.Name, Cwd: cwd, Inputs: given, Ready: true, graph: diagram.Of(def.Workflow), Commands: catalog.UsedCommands(def)}
	state := moderator.State{Workflow: def.Workflow, Start: protocol.Start{Prompt: prompt, Cwd: cwd, Inputs: given}}
	first, err := moderator.Next(ctx, state)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: err.Error(), Err: err}
	}
	p.First = planFirst{Role: first.Role, Prompt: first.Prompt, Cwd: cwd}
	a.planPlace(ctx, e, &p, first)
	if p.Limits, err = e.Limits(ctx, def.Workflow, l); err != nil {
		return err
	}
	settings, err := e.Config(ctx)
	if err != nil {
		return err
	}
	for _, role := range flow.Roles(def.Workflow) {
		c := e.Casting().Cast(ctx, def.Workflow, role, o.Wish())
		if c.Problem == nil && c.Player == protocol.PlayedByAgent {
			c.Problem = a.lacking(ctx, settings, c)
		}
		a.plan(&p, settings, c)
		planned := &p.Roles[len(p.Roles)-1]
		planned.Worst = e.Casting().Worst(ctx, def.Workflow, p.Limits, c)
		if c.Player == protocol.PlayedByCommand {
			planned.Command = moderator.KnownCommand(c.Command, state.Start)
		}
	}
	if err := e.CheckBudget(ctx, def.Workflow, l, o); err != nil {
		return err
	}
	return a.Print(p, func(w io.Writer) error { return p.text(w, a.Width()) })
}

// lacking returns the error of an agent whose program is not installed, as the agent says when
// it is asked.
func (a Commands) lacking(ctx context.Context, settings protocol.Config, c casting.Casting) *protocol.Error {
	around := a.Env
	if agent, err := config.ResolveAgent(settings, c.Agent, a.Env); err == nil {
		for name, value := range agent.Env {
			around = around.With(name, value)
		}
	}
	said := discover.Ask(ctx, c.Path, c.Command[1:], around)
	if said.Check == nil || said.Check.Program != "" || len(said.Check.Problems) == 0 {
		return nil
	}
	p := said.Check.Problems[0]
	return &protocol.Error{
		Code: protocol.CodeAgent, Message: plaintext.Line(p.What), Hints: []string{plaintext.Line(p.Do)},
	}
}

// planPlace finds where the first role would work.
func (a Commands) planPlace(ctx context.Context, e *engine.Engine, p *planOutput, first moderator.Decision) {
	if first.Kind != moderator.Run {
		return
	}
	dir, err := e.Workplace(ctx, first.Role, p.Cwd, first.Location)
	if err == nil {
		p.First.Cwd = dir
		return
	}
	why := app.Classify(err)
	p.First.Cwd, p.First.Problem, p.First.Hints = first.Location, app.Ref(why.Message), why.Hints
	p.Ready, a.Status = false, why.Code
}

// plan adds a role. One that nobody could play makes the exit status.
func (a Commands) plan(p *planOutput, settings protocol.Config, c casting.Casting) {
	role := planRole{Role: c.Role, Agent: app.Ref(c.Agent), Command: c.Command, Path: app.Ref(c.Path), Model: app.Ref(c.Model)}
	if role.Command == nil {
		role.Command = []string{}
	}
	system, _ := a.System()
	switch {
	case c.Player != protocol.PlayedByAgent:
		role.Player = c.Player
		if c.Player == protocol.PlayedByCommand {
			role.May = app.Ref(config.CommandAccess(settings, system) + config.Reaches(config.Network(settings, "", p.Workflow, c.Role)))
		}
	case len(c.Command) > 0:
		reaches := config.Reaches(config.Network(settings, c.Agent, p.Workflow, c.Role))
		role.May = app.Ref(config.Access(settings, c.Agent, c.Command, a.Env, system) + reaches)
	}
	if c.Timeout > 0 {
		role.Timeout = app.Ref(protocol.Span(c.Timeout))
	}
	if c.Problem != nil {
		role.Problem, role.Hints = app.Ref(c.Problem.Message), c.Problem.Hints
		if p.Ready {
			a.Status = c.Problem.Code
		}
		p.Ready = false
	}
	p.Roles = append(p.Roles, role)
}

// program is what would be started for the role, as far as it is known.
func (r planRole) program() string {
	switch {
	case r.Player == protocol.PlayedByPerson, r.Player == protocol.PlayedByWorkflow, r.Player == protocol.PlayedByAll, r.Player == protocol.PlayedByEach:
		return "-"
	case r.Player == protocol.PlayedByCommand && r.Path == nil && r.Problem == nil:
		return r.Command[0]
	}
	return or(r.Path, "not found")
}

func (p planOutput) text(w io.Writer, width int) error {
	if _, err := io.WriteString(w, p.graph.Text(width)+"\n"); err != nil {
		return err
	}
	t := term.NewTable("ROLE", "AGENT", "PROGRAM", "MODEL", "TIMEOUT", "AT MOST", "MAY")
	for _, r := range p.Roles {
		t.Row(r.Role, or(r.Agent, "none"), r.program(), or(r.Model, "-"), or(r.Timeout, "none"), worstText(r.Worst), or(r.May, "-"))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	for _, r := range p.Roles {
		if r.Player == protocol.PlayedByCommand {
			fmt.Fprintf(w, "%s runs: %s\n", plaintext.Line(r.Role), plaintext.Literal(r.Command))
		}
	}
	for _, line := range p.Commands {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	if err := term.TextLines(w, "first", p.First.Role+": "+term.FirstLine(p.First.Prompt, 100), "directory", p.First.Cwd,
		"limits", view.LimitsText(p.Limits)); err != nil {
		return err
	}
	if p.First.Problem != nil {
		fmt.Fprintf(w, "problem: %s\n", plaintext.Line(*p.First.Problem))
		for _, h := range p.First.Hints {
			fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
		}
	}
	told := map[string]bool{}
	for _, r := range p.Roles {
		if r.Problem == nil || told[*r.Problem] {
			continue
		}
		told[*r.Problem] = true
		fmt.Fprintf(w, "problem: role %s: %s\n", plaintext.Line(r.Role), plaintext.Line(*r.Problem))
		for _, h := range r.Hints {
			fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
		}
	}
	return nil
}

func or(s *string, otherwise string) string {
	if s == nil {
		return otherwise
	}
	return *s
}

// worstText is what a role may cost at most.
func worstText(w casting.Worst) string {
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
