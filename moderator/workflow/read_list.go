package workflow

import (
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// readTransitions reads a node that is a list: the first entry whose condition
// holds is taken.
func (d *draft) readTransitions(node *nodeDraft, n *yamldoc.Node) {
	node.list = true
	if len(n.Items) == 0 {
		d.add(n.Pos, "- {role: …}", "graph[%s] is an empty list: nothing would follow", node.name)
		d.incomplete = true
	}
	for i, item := range n.Items {
		d.addEdge(node, d.readTransition(node, i, item))
	}
}

func (d *draft) readTransition(node *nodeDraft, i int, n *yamldoc.Node) *edgeDraft {
	edge := &edgeDraft{status: strconv.Itoa(i), pos: n.Pos}
	what := node.at(edge)
	if n.Get("role") != nil && n.Get("to") != nil {
		d.add(n.Pos, "keep one of them", "%s has both \"role\" and \"to\", which mean the same", what)
	}
	if n.Get("when") != nil && n.Get("condition") != nil {
		d.add(n.Pos, "keep one of them", "%s has both \"when\" and \"condition\", which mean the same", what)
	}
	edge = d.readTarget(edge, n, what, []field{
		{key: "role"}, {key: "to"}, {key: "when"}, {key: "condition"}, {key: "prompt"}, {key: "location"},
	})
	if edge == nil || edge.condition == nil || isUnread(edge.condition) {
		return edge
	}
	text, ok := d.text(edge.condition, "when of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.add(edge.condition.Pos, "when: null, or leave it out, for always", "when of %s is blank", what)
	}
	if edge.when = strings.TrimSpace(text); edge.when == "" {
		d.incomplete = true // whether the entry is always taken is not known
	}
	return edge
}

// readConditions reads the expressions that lists refer to by name.
func (d *draft) readConditions(n *yamldoc.Node) {
	if n == nil || isUnread(n) {
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "conditions: {approved: {description: …, expression: …}}", "conditions must be a mapping from name to expression, but this is %s", kindOf(n))
		return
	}
	for _, e := range n.Entries {
		d.conditions = append(d.conditions, d.readCondition(e))
	}
}

func (d *draft) readCondition(e yamldoc.Entry) *conditionDraft {
	c := &conditionDraft{name: e.Key, pos: e.Pos}
	what := "condition " + quote(e.Key)
	if problem := nameProblem(e.Key); problem != "" {
		d.add(e.Pos, "", "the condition name %s %s", quote(e.Key), problem)
	}
	n := e.Value
	if n.Kind == yamldoc.Mapping {
		m := d.mapping(n, e.Pos, what, []field{
			{key: "description"},
			{key: "expression", required: true, remedy: "JSONata, such as meta.approved = false"},
		})
		c.description, _ = d.text(m["description"], "description of "+what)
		if n = m["expression"]; n == nil {
			return c
		}
	}
	if isNull(n) {
		d.add(e.Pos, "a JSONata expression, such as meta.approved = false", "%s says nothing", what)
		return c
	}
	text, ok := d.text(n, "expression of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.add(n.Pos, "a JSONata expression, such as meta.approved = false", "expression of %s is blank", what)
		return c
	}
	if ok && !isUnread(n) {
		c.expression, c.text = n, strings.TrimSpace(text)
	}
	return c
}
