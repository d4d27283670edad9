package htmlpage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Workflow is one to show: its roles in the order of the graph, and who would play each.
type Workflow struct {
	Name, Limits string
	Description  Text
	Roles        []Role
	MoreRoles    int
	Inputs       []Input
}

// Role is one to show.
type Role struct {
	Name, Player            string
	Agent, Model, Path, Why string // who would play it, and by which key of the config; "": not known, or nobody
	Timeout                 string
	About                   Text
	Texts                   []NamedText
	Parts                   []RolePart
	Problem                 string // why it could not be played now
	Hints                   []string
}

// NamedText is a text of a role.
type NamedText struct {
	Name string
	Text
}

// RolePart is what a child of a role plays.
type RolePart struct{ Key, Role, Workflow, WorkflowLink string }

// Input is what a run needs besides its task.
type Input struct {
	Name, Default string
	About         Text
	Schema        Text
}

// mostRoles is how many roles are shown.
const mostRoles = 100

// WorkflowOf reads what is to be shown of a workflow. link is the page of another one,
// "" if it has none.
func WorkflowOf(ctx context.Context, e *engine.Engine, def workflow.Definition, most int, link func(protocol.Hash) string) Workflow {
	w := Workflow{Name: Line(def.Name, Longest), Description: TextOf(def.Description, most), Limits: view.LimitsText(*cmp.Or(def.Limits, &protocol.Limits{}))}
	c, err := e.Config(ctx)
	caster := e.Casting()
	caster.Config = func(context.Context) (protocol.Config, error) { return c, err } // read once
	roles := flow.Roles(def.Workflow)
	w.MoreRoles = max(0, len(roles)-mostRoles)
	used := map[protocol.Hash]string{}
	for _, u := range def.Uses {
		used[u.Hash] = u.Definition.Name
	}
	for _, name := range roles[:len(roles)-w.MoreRoles] {
		role := roleOf(def, name, most)
		role.cast(caster.Cast(ctx, def.Workflow, name, casting.Wish{}), c, def.Name)
		for i, p := range partsOfRole(def.Roles[name]) {
			part := RolePart{Key: Line(p.key, Longest), Role: Line(p.Role, Longest)}
			if p.Workflow != "" {
				part.Workflow, part.WorkflowLink = Line(cmp.Or(used[p.Workflow], string(p.Workflow)), Longest), link(p.Workflow)
			}
			if i == kidsShownOfRole {
				role.Parts = append(role.Parts, RolePart{Key: "…"})
				break
			}
			role.Parts = append(role.Parts, part)
		}
		w.Roles = append(w.Roles, role)
	}
	for _, name := range slices.Sorted(maps.Keys(def.Inputs)) {
		in := def.Inputs[name]
		w.Inputs = append(w.Inputs, Input{
			Name: Line(name, Longest), Default: Line(ValueText(in.Default, Longest*4).Body, Longest),
			About: TextOf(in.Description, most), Schema: ValueText(def.InputSchemas[name], most),
		})
	}
	return w
}

// kidsShownOfRole is how many children of a role are listed.
const kidsShownOfRole = 100

func roleOf(def workflow.Definition, name string, most int) Role {
	r := def.Roles[name]
	role := Role{Name: Line(name, Longest), Player: playerText(r.Player()), About: TextOf(r.Description, most)}
	add := func(name string, t Text) {
		if !t.Empty() {
			role.Texts = append(role.Texts, NamedText{Name: name, Text: t})
		}
	}
	if len(r.Run) > 0 {
		var words []string
		for _, word := range r.Run {
			words = append(words, plaintext.Word(word))
		}
		add("Command", TextOf(strings.Join(words, " "), most))
	}
	add("Goal", TextOf(r.Goal, most))
	add("Capabilities", TextOf(strings.Join(r.Capabilities, "\n"), most))
	add("Procedure", TextOf(r.Procedure, most))
	add("Output", TextOf(r.Output, most))
	if r.Each != nil {
		add("One for each of", TextOf(r.Each.Of, most))
	}
	add("Joined by", TextOf(r.Join, most))
	add("Form of its data", ValueText(def.Schemas[name], most))
	return role
}

func playerText(p protocol.Player) string {
	return map[protocol.Player]string{
		protocol.PlayedByAgent: "an agent", protocol.PlayedByCommand: "a command", protocol.PlayedByPerson: "a person",
		protocol.PlayedByWorkflow: "another workflow", protocol.PlayedByAll: "several at once", protocol.PlayedByEach: "one for each",
	}[p]
}

// cast says who would play the role now.
func (r *Role) cast(c casting.Casting, config protocol.Config, workflow string) {
	r.Path, r.Model = Line(c.Path, LongestTitle), Line(c.Model, Longest)
	if c.Timeout > 0 {
		r.Timeout = render.Duration(c.Timeout.Milliseconds())
	}
	if c.Player == protocol.PlayedByAgent {
		r.Agent, r.Why = Line(c.Agent, Longest), "defaultAgent"
		if config.AgentOverrides[workflow][c.Role] != "" {
			r.Why = Line("agentOverrides."+workflow+"."+c.Role, LongestTitle)
		}
		if config.ModelOverrides[workflow+"."+c.Role] != "" {
			r.Why += ", " + Line("modelOverrides."+workflow+"."+c.Role, LongestTitle)
		}
	}
	if c.Problem != nil {
		r.Problem = Line(c.Problem.Message, LongestCommand)
		for _, hint := range c.Problem.Hints {
			r.Hints = append(r.Hints, Line(hint, LongestCommand))
		}
	}
}

type rolePart struct {
	key string
	protocol.ChildRole
}

func partsOfRole(r protocol.Role) (parts []rolePart) {
	if r.Workflow != "" {
		return []rolePart{{ChildRole: protocol.ChildRole{Workflow: r.Workflow}}}
	}
	if r.Each != nil {
		return []rolePart{{ChildRole: r.Each.ChildRole}}
	}
	for _, key := range slices.Sorted(maps.Keys(r.All)) {
		parts = append(parts, rolePart{key: key, ChildRole: r.All[key]})
	}
	return parts
}

// WorkflowGraph draws a workflow as SVG.
func WorkflowGraph(w protocol.Workflow) (string, error) { return diagram.Of(w).SVG() }
