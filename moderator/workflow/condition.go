package workflow

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// example is a typical condition.
const example = "meta.approved = false"

// checkConditions checks the expressions, the named conditions, and that every transition of a list can be
// taken.
func (d *draft) checkConditions() {
	for _, c := range d.conditions {
		if c.expression != nil {
			d.checkExpression("condition "+quote(c.name), c.text, c.expression, nil, d.usesOf(c.name))
		}
	}
	for _, n := range d.nodes {
		if n.list || n.guarded {
			d.checkEdges(n)
		}
	}
}

// checkEdges checks the list of edges of a node, or those of its statuses: only the last edge can be unconditional.
func (d *draft) checkEdges(n *nodeDraft) {
	always, last := map[string]string{}, map[string]*edgeDraft{} // by status; "" for the list of the node
	entries := map[string]int{}
	for _, e := range n.edges {
		list, entry := e.status, strconv.Itoa(entries[e.status])
		if n.list {
			list, entry = "", e.status
		}
		entries[list]++
		last[list] = e
		switch before, unreachable := always[list]; {
		case n.list && e.failure:
			d.checkFailureCondition(n, e)
		case unreachable:
			remedy := "give entry " + before + " a condition, or move it to the end"
			if n.list && n.bare() {
				remedy = "to run several at once, define a role such as both: {all: [" + strings.Join(n.targets(), ", ") + "]}"
			}
			d.Add(e.pos, remedy, "%s is unreachable: entry %s before it has no condition", n.at(e), before)
		case e.condition == nil:
			always[list] = entry
		case e.when != "":
			d.checkCondition(n, e)
		}
	}
	for _, e := range n.edges {
		if n.guarded && last[e.status] == e && e.condition != nil {
			d.Add(e.pos, "add an entry without when", "%s: an edge with when needs another edge after it", n.at(e))
		}
	}
}

// bare reports whether a list consists only of role names, as in a list of parts.
func (n *nodeDraft) bare() bool {
	return !slices.ContainsFunc(n.edges, func(e *edgeDraft) bool {
		return e.condition != nil || e.prompt != nil || strings.HasPrefix(e.edge.Role, "$")
	})
}

// targets returns the roles that a node leads to.
func (n *nodeDraft) targets() []string {
	var names []string
	for _, e := range n.edges {
		names = append(names, e.edge.Role)
	}
	return names
}

// checkCondition checks a transition's condition: the name of a condition, or an expression.
func (d *draft) checkCondition(n *nodeDraft, e *edgeDraft) {
	if slices.ContainsFunc(d.conditions, func(c *conditionDraft) bool { return c.name == e.when }) {
		return
	}
	if isConditionName(e.when) {
		d.Add(e.condition.Pos, d.conditionRemedy(n, e.when), "%s uses unknown condition %s", n.at(e),
			quote(e.when))
		return
	}
	d.checkExpression("when of "+n.at(e), e.when, e.condition, d.roleByName[n.name], func() []answer { return []answer{d.sourceOf(n, e)} })
}

// wordPattern is compiled on first use: Unicode's letter tables are large, and compiling them would slow down
// the start of every command.
var wordPattern = lazyregexp.New(`^[\pL_][\pL\pN_-]*$`)

// isConditionName reports whether a condition must be a name: a word that, as an expression, could only be a
// field missing from the context.
func isConditionName(text string) bool {
	if !wordPattern().MatchString(text) || slices.Contains([]string{"true", "false", "null"}, text) {
		return false
	}
	first, _, _ := strings.Cut(text, "-")
	return !slices.Contains(moderator.ContextFields(), first)
}

func (d *draft) conditionRemedy(n *nodeDraft, name string) string {
	if d.Full() {
		return ""
	}
	if r := d.roleByName[n.name]; r != nil && slices.Contains(r.answers.any.names(), name) {
		return "to ask for the field of the answer write meta." + name
	}
	names := make([]string, len(d.conditions))
	for i, c := range d.conditions {
		names[i] = c.name
	}
	if len(names) == 0 {
		return `add it to "conditions", or write an expression such as ` + example
	}
	return d.DidYouMean(name, names, "the conditions are")
}

// checkExpression checks the syntax of an expression and the names in it. r, if not nil, is the role whose
// answer the expression reads; places lists the edges where it is evaluated.
func (d *draft) checkExpression(what, text string, n *yamldoc.Node, r *roleDraft, places func() []answer) {
	if d.Full() {
		d.Miss(1)
		return
	}
	expr, err := jsonata.Parse(text)
	if syntax, ok := errors.AsType[*jsonata.Error](err); ok {
		d.Add(d.InExpression(n, text, syntax.Pos.Offset), syntax.Hint, "%s: %s", what, syntax.Message)
		return
	}
	reads := expr.Reads()
	for _, v := range reads.Unbound {
		if slices.Contains([]string{protocol.InputsVariable, protocol.StepsVariable, protocol.BodyVariable}, "$"+v.Text) {
			continue
		}
		d.Add(d.InExpression(n, text, v.Pos.Offset), "put a field name that starts with $ in backquotes: `$"+v.Text+"`",
			"%s: the variable $%s never has a value", what, v.Text)
	}
	d.checkPaths(what, text, n, reads.Paths, r)
	d.checkEarlierPaths(what, text, n, reads, places)
}

// checkPaths checks the paths that an expression reads; see checkExpression.
func (d *draft) checkPaths(what, text string, n *yamldoc.Node, paths []jsonata.Path, r *roleDraft) {
	for _, p := range paths {
		at := func() yamldoc.Pos { return d.InExpression(n, text, p.Pos.Offset) }
		switch first := p.Names[0]; {
		case !slices.Contains(moderator.ContextFields(), first):
			d.Add(at(), d.contextRemedy(p, r), "%s: %s never has a value", what, quote(strings.Join(p.Names, ".")))
		case (first == "meta" || first == "output") && len(p.Names) > 1 && r != nil && r.schema != nil:
			d.checkField(what, p, 1, r.name, r.answers.any, at)
		}
	}
}

// contextRemedy suggests a replacement for a path that isn't in the context.
func (d *draft) contextRemedy(p jsonata.Path, r *roleDraft) string {
	if r != nil && r.schema != nil && !r.answers.any.open {
		if _, known := r.answers.any.field(p.Names[0], false); known {
			return "did you mean " + quote("meta."+strings.Join(p.Names, ".")) + "?"
		}
	}
	return d.DidYouMean(p.Names[0], moderator.ContextFields(), "the context has")
}

// checkField checks the n-th name of a path, a field of a role's answer.
func (d *draft) checkField(what string, p jsonata.Path, n int, role string, answer fields, at func() yamldoc.Pos) {
	name, shown := p.Names[n], quote(strings.Join(p.Names, "."))
	if value, known := answer.field(name, false); known || name == protocol.StatusKey {
		values := value.texts()
		if p.Equals != "" && n+1 == len(p.Names) && len(values) > 0 && !slices.Contains(values, p.Equals) {
			d.Add(at(), d.DidYouMean(p.Equals, values, "it may be"), "%s: %s is never %s", what, shown, quote(p.Equals))
		}
		return
	}
	near := nearest(name, answer.names())
	if p.Tested && len(near) == 0 {
		return // tests whether the field exists
	}
	remedy := d.DidYouMean(name, answer.names(), "the schema of "+quote(role)+" has")
	if len(near) == 1 && strings.HasPrefix(near[0], "$") {
		remedy = "did you mean " + strings.Join(p.Names[:n], ".") + ".`" + near[0] + "`?"
	}
	d.Add(at(), remedy, "%s: %s never has a value", what, shown)
}
