package workflow

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Handling of failures: edges for failures, the implicit edge "failed", failing parts, and edges with both a
// status and a condition.

// failureSchema returns the schema of a failed step's answer.
func failureSchema() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"type": "object", "additionalProperties": false,
		"required": []any{protocol.StatusKey, "error", "code", "tries"}, "properties": map[string]any{
			protocol.StatusKey: text, "error": text, "code": text, "tries": map[string]any{"type": "integer"},
		}}
}

// markFailures marks the edges that are taken if a role can't be played. A role whose own answer can be
// "$error" keeps that edge for the answer.
func (d *draft) markFailures() {
	for _, n := range d.nodes {
		r := d.roleByName[n.name]
		own := r != nil && slices.Contains(r.statuses.values, protocol.ErrorStatus)
		for _, e := range n.edges {
			asks := e.when == protocol.ErrorStatus || strings.HasPrefix(e.when, protocol.ErrorStatus+" and (")
			if e.failure = n.list && asks || !n.list && e.status == protocol.ErrorStatus; !e.failure {
				continue
			}
			switch {
			case own && n.list:
			case own:
				e.failure = false
				d.Note(func() yamldoc.Pos { return e.pos },
					"%s is taken when %s answers %s (as its schema allows), not when it fails", n.at(e), quote(n.name),
					protocol.ErrorStatus)
				continue
			case r == nil: // reported elsewhere
				continue
			case r.role.Person:
				d.Add(e.pos, "remove "+protocol.ErrorStatus, "%s is unreachable: a person never fails", n.at(e))
			}
			d.language = protocol.Language3
		}
	}
	for _, r := range d.roles {
		if d.language == protocol.Language3 && slices.Contains(r.statuses.values, protocol.ErrorStatus) {
			d.Add(r.pos, "rename the status",
				"%s can answer %s, which in this workflow means that a role failed", quote(r.name), protocol.ErrorStatus)
		}
	}
}

// withoutFailures returns a copy of the node without edges for failures.
func (n *nodeDraft) withoutFailures() *nodeDraft {
	out := *n
	out.edges = slices.DeleteFunc(slices.Clone(n.edges), func(e *edgeDraft) bool { return e.failure })
	return &out
}

// checkFailureCondition checks the rest of a condition for failures.
func (d *draft) checkFailureCondition(n *nodeDraft, e *edgeDraft) {
	asked, _ := moderator.OfFailure(protocol.Workflow{Language: protocol.Language3}, e.when)
	if asked != "" {
		d.checkExpression("when of "+n.at(e), asked, e.condition, nil, func() []answer { return []answer{d.sourceOf(n, e)} })
	}
}

// addFailed adds the edge "failed", to $FAIL with the error, to the nodes of roles that uwf answers for,
// unless the author wrote it.
func (d *draft) addFailed() {
	for _, r := range d.roles {
		n := d.nodeByName[r.name]
		if n == nil || n.list || len(n.edges) == 0 || !r.failsByItself() ||
			slices.ContainsFunc(n.edges, func(e *edgeDraft) bool {
				return e.status == moderator.JoinFailed || e.status == protocol.DefaultStatus
			}) {
			continue
		}
		name := strings.ReplaceAll(r.name, "{{", "{ {")
		prompt := name + " failed: exit status {{exitCode}}{{#output}}\n{{output}}{{/output}}"
		switch {
		case r.derived:
			prompt = name + " failed{{#errors}}\n{{part}}{{#error}}: {{error}}{{/error}}{{/errors}}"
		case r.role.HasChildren():
			prompt = name + " failed{{#results}}{{#error}}\n{{key}}: {{error}}{{/error}}{{/results}}"
		}
		n.edges = append(n.edges, &edgeDraft{status: moderator.JoinFailed, pos: n.pos, target: n.pos,
			edge: protocol.Edge{Role: protocol.FailNode, Prompt: prompt}})
	}
}

// failsByItself reports whether uwf computes the role's answer, including its failure.
func (r *roleDraft) failsByItself() bool {
	if r.role.Player() == protocol.PlayedByCommand {
		return r.role.Parse == ""
	}
	return r.derived || r.role.HasChildren() && r.role.Compute == "" && r.role.Join == "" && r.yaml == nil && r.schema != nil
}

// readOnFailure reads the effect of a failed child on its role.
func (d *draft) readOnFailure(r *roleDraft, n *yamldoc.Node, what string) {
	text, ok := d.text(n, "onFailure of "+what)
	switch {
	case ok && protocol.OnFailure(text) != protocol.ContinueOnFailure:
		d.Add(n.Pos, "write onFailure: continue, or remove it: then a failed child stops the run",
			"onFailure of %s cannot be %s", what, quote(text))
	case ok:
		r.role.OnFailure, d.language = protocol.ContinueOnFailure, protocol.Language3
	}
}

// readWhen reads the condition of a part.
func (d *draft) readWhen(c *childDraft, role *protocol.ChildRole, n *yamldoc.Node) {
	if n == nil || isNull(n) {
		return
	}
	text, ok := d.text(n, "when of "+c.desc)
	if ok && strings.TrimSpace(text) == "" {
		d.Add(n.Pos, "remove it to run the part always", "when of %s is blank", c.desc)
	} else if ok {
		c.when, c.condition, role.When, d.language = n, text, strings.TrimSpace(text), protocol.Language3
	}
}

// readCompute reads the expression that computes a role's answer.
func (d *draft) readCompute(r *roleDraft, n *yamldoc.Node, what string) {
	text, ok := d.text(n, "compute of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.Add(n.Pos, "compute: \"{ 'count': $count(history) }\"", "compute of %s is blank", what)
	} else if ok {
		r.role.Compute, r.join, d.language = text, n, protocol.Language3
	}
}

// readGuarded reads a status's list of edges.
func (d *draft) readGuarded(node *nodeDraft, e yamldoc.Entry) {
	node.guarded = true
	first := &edgeDraft{status: e.Key, pos: e.Pos}
	d.checkStatusKey(first, node.at(first))
	d.readEdges(node, e.Key, e.Value, node.at(first))
}

// guard returns the condition of an edge after converting its map to a list.
func (d *draft) guard(n *nodeDraft, e *edgeDraft) string {
	asked := e.when
	for _, c := range d.conditions {
		if c.name == asked {
			asked = c.text
		}
	}
	status := ""
	switch r := d.roleByName[n.name]; {
	case e.failure:
		status = protocol.ErrorStatus
	case e.status == protocol.DefaultStatus || e.status == protocol.StartAlias && n.name == protocol.StartNode:
	default:
		key := "`" + protocol.StatusKey + "`"
		if r != nil && r.statuses.key != protocol.StatusKey {
			key = r.statuses.key
		}
		value, _ := json.Marshal(e.status)
		status = "meta." + key + " = " + string(value)
	}
	if status == "" || asked == "" {
		return status + asked
	}
	return status + " and (" + asked + ")"
}
