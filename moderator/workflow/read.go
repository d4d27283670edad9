package workflow

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// readDraft reads a file. It returns nil if the file isn't a workflow.
func readDraft(r *report, root *yamldoc.Node, src Source) *draft {
	if isUnread(root) {
		return nil
	}
	if root.Kind != yamldoc.Mapping {
		r.Add(root.Pos, "start with: name, description, roles, graph", "a workflow must be a mapping, not %s",
			kindOf(root))
		return nil
	}
	if tool, at := foreignTool(root); tool != "" {
		r.Add(at, comingFrom, "this is a workflow of %s", tool)
		return nil
	}
	d := &draft{report: r, roleByName: map[string]*roleDraft{}, nodeByName: map[string]*nodeDraft{},
		workflow: src.Workflow}
	d.refuseTags(root)
	root = d.expand(d.modernize(d.withoutVersion(root)))
	m := d.mapping(root, yamldoc.Pos{Line: 1, Column: 1}, "the workflow", []field{
		{key: "name", required: true, remedy: "the file name without its extension"},
		{key: "description", required: true, remedy: "one sentence about what the workflow is for"},
		{key: "roles", required: true, remedy: "each role with a goal, a prompt and an answer"},
		{key: "conditions"},
		{key: "graph", required: true, remedy: "$START and each role, with their edges"},
		{key: "limits"},
		{key: "inputs"},
	})
	d.readName(m["name"])
	d.description, _ = d.text(m["description"], "description")
	d.readInputs(m["inputs"])
	d.readRoles(m["roles"])
	d.readConditions(m["conditions"])
	d.readGraph(m["graph"])
	d.readLimits(m["limits"])
	return d
}

// field is a possible key of a mapping.
type field struct {
	key      string
	required bool
	older    bool   // alternative spelling, which no remedy suggests
	remedy   string // suggestion if the key is missing
}

// mapping returns the values of a mapping's known keys and reports unknown and missing ones. A key doesn't
// count as missing if an unknown key looks like a misspelling of it. A null value counts as missing.
func (d *draft) mapping(n *yamldoc.Node, at yamldoc.Pos, what string, fields []field) map[string]*yamldoc.Node {
	values := make(map[string]*yamldoc.Node, len(n.Entries))
	var keys, shown []string
	for _, f := range fields {
		if keys = append(keys, f.key); !f.older {
			shown = append(shown, f.key)
		}
	}
	guessed := map[string]bool{}
	for _, e := range n.Entries {
		if !slices.Contains(keys, e.Key) {
			d.Add(e.Pos, d.keyRemedy(e, keys, shown), "%s has no key %s", what, quote(e.Key))
			for _, key := range nearest(e.Key, keys) {
				guessed[key] = true
			}
			continue
		}
		if !isNull(e.Value) {
			values[e.Key] = e.Value
		}
	}
	for _, f := range fields {
		if f.required && values[f.key] == nil && !guessed[f.key] {
			d.Add(at, fmt.Sprintf("add %q: %s", f.key, f.remedy), "%s has no %q", what, f.key)
		}
	}
	return values
}

// keyRemedy returns the remedy for an unexpected key.
func (d *draft) keyRemedy(e yamldoc.Entry, keys, shown []string) string {
	if isSplitText(e) {
		return splitRemedy
	}
	if remedy := foreignKeys()[e.Key]; remedy != "" && !slices.Contains(keys, e.Key) {
		return remedy
	}
	if len(nearest(e.Key, keys)) == 0 {
		keys = shown
	}
	return d.DidYouMean(e.Key, keys, "the keys here are")
}

// splitRemedy is the remedy for isSplitText.
const splitRemedy = "put the whole text in quotes: a comma ends it inside {…}"

// isSplitText reports whether an entry is probably the rest of a text split at a comma, as in {description:
// first this, then that}.
func isSplitText(e yamldoc.Entry) bool {
	return isNull(e.Value) && strings.Contains(e.Key, " ")
}

// text reads a text. what describes it in messages.
func (d *draft) text(n *yamldoc.Node, what string) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.Kind == yamldoc.Scalar {
		if s, ok := n.Scalar.(string); ok {
			return s, true
		}
	}
	d.Add(n.Pos, asText(n), "%s must be a string, not %s", what, kindOf(n))
	return "", false
}

// asText returns the remedy for a value that should be a text.
func asText(n *yamldoc.Node) string {
	if n.Kind == yamldoc.Scalar && n.Text != "" {
		return "put it in quotes: " + quote(n.Text)
	}
	return ""
}

func (d *draft) readName(n *yamldoc.Node) {
	name, ok := d.text(n, "name")
	if !ok {
		return
	}
	d.name = word{name, n.Pos}
	d.checkWorkflowName(d.name)
}

// readLimits reads the bounds of a run.
func (d *draft) readLimits(n *yamldoc.Node) {
	if n == nil || isUnread(n) {
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "limits: {maxSteps: 100, maxVisitsPerRole: 20}", "limits must be a mapping, not %s", kindOf(n))
		return
	}
	var fields []field
	for _, x := range protocol.AllLimits() {
		fields = append(fields, field{key: x.Key})
	}
	m := d.mapping(n, n.Pos, "limits", fields)
	d.limits = &protocol.Limits{}
	for _, x := range protocol.AllLimits() {
		var amount float64
		switch x.Unit {
		case protocol.UnitCount:
			amount = float64(d.limit(m[x.Key], x.Key, math.MaxInt32))
		case protocol.UnitTokens:
			amount = float64(d.limit(m[x.Key], x.Key, protocol.MaxFigure))
		case protocol.UnitDollars:
			amount = d.dollars(m[x.Key], x.Key)
		case protocol.UnitMs:
			amount = float64(d.span(m[x.Key], x.Key, x.Key+": 2h"))
		}
		x.Set(d.limits, amount)
	}
}

func (d *draft) limit(n *yamldoc.Node, what string, most int64) int64 {
	if n == nil {
		return 0
	}
	count, ok := n.Scalar.(int64)
	if n.Kind != yamldoc.Scalar || !ok || count < 1 || count > most {
		remedy := "remove it to use the default"
		if n, err := strconv.Atoi(n.Text); err == nil && n > 0 {
			remedy = fmt.Sprintf("%s: %d, without quotes", what, n)
		}
		d.Add(n.Pos, remedy, "%s must be a positive integer, not %s", what, kindOf(n))
		return 0
	}
	return count
}

// dollars reads an amount.
func (d *draft) dollars(n *yamldoc.Node, what string) float64 {
	if n == nil {
		return 0
	}
	var amount float64
	switch v := n.Scalar.(type) {
	case int64:
		amount = float64(v)
	case float64:
		amount = v
	}
	if n.Kind != yamldoc.Scalar || !(amount > 0 && amount <= protocol.MaxCostUSD) {
		d.Add(n.Pos, what+": 5.00", "%s must be an amount in dollars above 0, not %s", what, kindOf(n))
		return 0
	}
	return amount
}

// span reads a duration, in ms.
func (d *draft) span(n *yamldoc.Node, what, example string) int64 {
	if n == nil || isUnread(n) {
		return 0
	}
	text, _ := n.Scalar.(string)
	t, err := time.ParseDuration(text)
	if n.Kind != yamldoc.Scalar || err != nil || t < time.Millisecond {
		d.Add(n.Pos, example, "%s must be a duration such as 90s, 30m or 2h, not %s", what, kindOf(n))
		return 0
	}
	return t.Milliseconds()
}

// readEdges reads the list of edges of a node or, if status is not "", of a status. The first edge whose condition
// holds is taken.
func (d *draft) readEdges(node *nodeDraft, status string, n *yamldoc.Node, what string) {
	if len(n.Items) == 0 {
		d.Add(n.Pos, "- {role: …}", "%s is an empty list", what)
		d.incomplete = true
	}
	for i, item := range n.Items {
		edge := &edgeDraft{status: status, pos: item.Pos}
		if node.list {
			edge.status = strconv.Itoa(i)
		}
		d.addEdge(node, d.readTransition(node, edge, item))
	}
}

func (d *draft) readTransition(node *nodeDraft, edge *edgeDraft, n *yamldoc.Node) *edgeDraft {
	what := node.at(edge)
	if n.Get("role") != nil && n.Get("to") != nil {
		d.Add(n.Pos, "keep only one", "%s has both \"role\" and \"to\", which are the same", what)
	}
	if n.Get("when") != nil && n.Get("condition") != nil {
		d.Add(n.Pos, "keep only one", "%s has both \"when\" and \"condition\", which are the same", what)
	}
	edge = d.readTarget(edge, n, what, []field{
		{key: "role"}, {key: "to", older: true}, {key: "when"}, {key: "condition", older: true}, {key: "prompt"},
		{key: "location"},
	})
	if edge == nil || edge.condition == nil || isUnread(edge.condition) {
		return edge
	}
	text, ok := d.text(edge.condition, "when of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.Add(edge.condition.Pos, "remove it, or write when: null, for always", "when of %s is blank", what)
	}
	if edge.when = strings.TrimSpace(text); edge.when == "" {
		d.incomplete = true // unknown whether the edge is unconditional
	}
	return edge
}

// readConditions reads the named conditions.
func (d *draft) readConditions(n *yamldoc.Node) {
	if n == nil || isUnread(n) {
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "conditions: {approved: {description: …, expression: …}}",
			"conditions must be a mapping from name to expression, not %s", kindOf(n))
		return
	}
	for _, e := range n.Entries {
		d.conditions = append(d.conditions, d.readCondition(e))
	}
}

func (d *draft) readCondition(e yamldoc.Entry) *conditionDraft {
	c := &conditionDraft{name: e.Key}
	what := "condition " + quote(e.Key)
	if problem := nameProblem(e.Key); problem != "" {
		d.Add(e.Pos, "", "the condition name %s %s", quote(e.Key), problem)
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
		d.Add(e.Pos, "a JSONata expression, such as meta.approved = false", "%s is empty", what)
		return c
	}
	text, ok := d.text(n, "expression of "+what)
	if ok && strings.TrimSpace(text) == "" {
		d.Add(n.Pos, "a JSONata expression, such as meta.approved = false", "expression of %s is blank", what)
		return c
	}
	if ok && !isUnread(n) {
		c.expression, c.text = n, strings.TrimSpace(text)
	}
	return c
}

// inputDraft is an entry of "inputs".
type inputDraft struct {
	name        string
	description string
	schema      any           // nil if malformed
	yaml        *yamldoc.Node // of the schema
	fallback    *yamldoc.Node // nil: none
}

// exampleInput is a typical input.
const exampleInput = "string"

// inputPattern matches names that are valid in templates, in JSONata and on a command line.
var inputPattern = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`)

func (d *draft) readInputs(n *yamldoc.Node) {
	if n == nil {
		return
	}
	if isUnread(n) {
		d.lostInputs = true
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "inputs: {branch: "+exampleInput+"}", "inputs must be a mapping from name to input, not %s",
			kindOf(n))
		d.lostInputs = true
		return
	}
	for _, e := range n.Entries {
		if i := d.readInput(e); i != nil {
			d.inputs = append(d.inputs, i)
		}
	}
}

func (d *draft) readInput(e yamldoc.Entry) *inputDraft {
	i := &inputDraft{name: e.Key}
	what := "input " + quote(e.Key)
	if !inputPattern().MatchString(e.Key) || len(e.Key) > maxName {
		d.Add(e.Pos, "letters, digits and _, starting with a letter",
			"the input name %s cannot be used in templates and conditions", quote(e.Key))
	}
	n := e.Value
	if isUnread(n) {
		return i
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, e.Key+": "+exampleInput, "%s must be a mapping, not %s", what, kindOf(n))
		return i
	}
	m := d.mapping(n, e.Pos, what, []field{
		{key: "schema", required: true, remedy: "the JSON Schema of its value, such as {type: string}"}, {key: "default"},
		{key: "description"},
	})
	i.description, _ = d.text(m["description"], "description of "+what)
	i.fallback = m["default"]
	schema := m["schema"]
	switch {
	case schema == nil, isUnread(schema):
		return i
	case schema.Kind != yamldoc.Mapping:
		d.Add(schema.Pos, "schema: {type: string}", "schema of %s must be a JSON Schema, not %s", what,
			kindOf(schema))
		return i
	}
	i.yaml, i.schema = schema, schema.Value()
	return i
}

// checkInputs checks the schemas of the inputs and their defaults.
func (d *draft) checkInputs() {
	for _, i := range d.inputs {
		if i.schema == nil {
			continue
		}
		if problems := jsonschema.Check(i.schema); len(problems) > 0 {
			for _, p := range problems {
				at, remedy := d.inSchema(i.yaml, p.Path)
				d.Add(at, remedy, "the schema of input %s: %s", quote(i.name), p)
			}
			continue
		}
		if i.fallback == nil {
			continue
		}
		compiled, err := jsonschema.Compile(i.schema)
		if err != nil {
			d.Add(i.yaml.Pos, "", "the schema of input %s: %v", quote(i.name), err)
			continue
		}
		problems, err := compiled.Validate(context.Background(), i.fallback.Value()) // takes no longer than the default
		if err != nil {
			d.Add(i.fallback.Pos, "", "the default of input %s: %v", quote(i.name), err)
		}
		for _, p := range problems {
			d.Add(i.fallback.Pos, "", "the default of input %s does not match its schema: %s", quote(i.name), p)
		}
	}
}

// checkInputTag checks a template name that begins with $inputs.
func (d *draft) checkInputTag(what string, tag mustache.Tag, at func() yamldoc.Pos) {
	if d.lostInputs {
		return
	}
	names := d.inputVariables()
	if len(tag.Path) > 1 && slices.Contains(names, strings.Join(tag.Path[:2], ".")) {
		return
	}
	if len(tag.Path) == 1 && tag.Kind != mustache.Variable {
		return
	}
	remedy := "declare it: inputs: {name: " + exampleInput + "}"
	if len(names) > 0 {
		remedy = d.DidYouMean(tag.Name, names, "there is")
	}
	d.Add(at(), remedy, "%s: %s is not an input", what, quote(tag.Name))
}

// inputVariables returns the inputs as templates name them.
func (d *draft) inputVariables() []string {
	names := make([]string, len(d.inputs))
	for n, i := range d.inputs {
		names[n] = protocol.InputsVariable + "." + i.name
	}
	return names
}

func (i *inputDraft) input() protocol.Input {
	in := protocol.Input{Description: i.description}
	if i.fallback != nil {
		in.Default = i.fallback.Value()
	}
	return in
}
