package workflow

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/internal/reach"
	"github.com/united-workforce/uwf/moderator/jsonata"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// checkLists tries a join with a single result. JSONata doesn't distinguish a value from a list with one
// item, so an expression that returns a list for many results can return a bare value for one, which doesn't
// match a list in the schema.
func (d *draft) checkLists(r *roleDraft, what string, expr *jsonata.Expr) {
	answers := d.answersOfChildren(r)
	earlier := func(p jsonata.Path) bool { return isNew("$" + p.Names[0]) } // unknown values
	if r.schema == nil || len(answers.schemas) == 0 || d.Full() || slices.ContainsFunc(expr.Reads().Bound, earlier) {
		return
	}
	output := map[string]any{}
	for _, s := range answers.schemas {
		if one, ok := sample(s, 0).(map[string]any); ok {
			maps.Copy(output, one)
		}
	}
	result := map[string]any{"key": "k", "item": map[string]any{}, "status": "done", "output": output}
	value, _, err := expr.Eval(context.Background(), map[string]any{"results": []any{result}, "depth": int64(0),
		"history": []any{}, "steps": []any{}},
		jsonata.Options{MaxSteps: 100_000, Bindings: map[string]any{"inputs": map[string]any{}}})
	given, ok := value.(map[string]any)
	if err != nil || !ok {
		return // depends on unknown values
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, isList := given[name].([]any); isList || given[name] == nil || !wantsList(r, given, name) {
			continue
		}
		d.Add(r.join.Pos, "put brackets around it: ["+"…"+"]",
			"%s: with a single result, %s is not a list, but its schema needs one", what, quote(name))
	}
}

// wantsList reports whether a field must be a list in every schema variant that matches the answer.
func wantsList(r *roleDraft, given map[string]any, name string) bool {
	status, _ := given[r.statuses.key].(string)
	root, _ := r.schema.(map[string]any)
	variants, isOneOf := root["oneOf"].([]any)
	if !isOneOf {
		variants = []any{root}
	}
	wanted := false
	for _, v := range variants {
		if statuses := variantStatuses(v, r.statuses.key); status != "" && len(statuses) > 0 &&
			isOneOf && !slices.Contains(statuses, status) {
			continue
		}
		variant, _ := v.(map[string]any)
		schema, named := property(variant, name)
		if !named {
			schema, named = property(root, name)
		}
		if named && schema["type"] != "array" {
			return false
		}
		wanted = wanted || named
	}
	return wanted
}

// sample returns a value that matches a schema, for simple schemas.
func sample(schema any, depth int) any {
	const deep = 5
	s, _ := schema.(map[string]any)
	if depth > deep {
		return nil
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if list, _ := s["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	kind, _ := s["type"].(string)
	switch properties, _ := s["properties"].(map[string]any); {
	case kind == "object", properties != nil:
		object := map[string]any{}
		for name, p := range properties {
			object[name] = sample(p, depth+1)
		}
		return object
	case kind == "array":
		return []any{sample(s["items"], depth+1)}
	case kind == "integer", kind == "number":
		return int64(1)
	case kind == "boolean":
		return true
	case strings.HasPrefix(kind, "n"):
		return nil
	}
	return "text"
}

// draft is a parsed workflow file, in file order, with positions for messages.
type draft struct {
	*report
	workflow    func(name string) (Used, error) // resolves workflows that roles run; nil resolves none
	uses        []Used
	name        word
	description string
	limits      *protocol.Limits
	conditions  []*conditionDraft
	inputs      []*inputDraft
	roles       []*roleDraft
	nodes       []*nodeDraft
	hasGraph    bool // the graph is a mapping
	graphPos    yamldoc.Pos

	roleNames  []string
	targets    []string // possible targets of an edge: roles, $END and $SUSPEND
	roleByName map[string]*roleDraft
	nodeByName map[string]*nodeDraft

	short     map[string]bool // nodes written as their only edge, see short.go
	copied    int             // total bytes of role prompts copied to edges
	reported  map[string]bool // notices already issued
	derived   map[string]bool // roles whose schema is derived from their parts
	versioned bool            // the file has "version: 1", as files of the original do
	language  int             // [protocol.Language3] if it uses features of that version
	reached   *reach.Graph
	older     bool // the file has the older form, see older.go
	assigns   bool // it assigns agents

	// incomplete means that parts of the graph could not be read, so checks that need the whole graph would
	// report false problems.
	incomplete bool
	lostNodes  bool // some nodes could not be read
	lostInputs bool // the inputs could not be read
	lostRoles  bool // the roles are in an unreadable file
}

// word is a text with its position.
type word struct {
	text string
	pos  yamldoc.Pos
}

type roleDraft struct {
	name     string
	pos      yamldoc.Pos // of the name
	role     protocol.Role
	player   protocol.Player
	blank    bool          // the description is present but empty
	derived  bool          // its schema is derived from others, where it is checked
	schema   any           // nil if malformed
	yaml     *yamldoc.Node // of the schema
	statuses statuses
	answers  answers
	run      *yamldoc.Node // for a command
	env      map[string]*yamldoc.Node
	children []childDraft  // for a role with children
	of, join *yamldoc.Node // for such a role; nil if omitted
}

// conditionDraft is an entry of "conditions".
type conditionDraft struct {
	name        string
	description string
	expression  *yamldoc.Node // nil if malformed
	text        string        // of the expression
}

type nodeDraft struct {
	name  string
	pos   yamldoc.Pos // of the name
	short bool        // written as its only edge
	list  bool        // a transition list: the first edge whose condition holds is taken
	edges []*edgeDraft
	// guarded means that a status has a list of edges. The first edge whose condition holds is taken.
	guarded bool
}

// at describes an edge in messages.
func (n *nodeDraft) at(e *edgeDraft) string {
	if n.short {
		return "graph[" + n.name + "]"
	}
	return "graph[" + n.name + "][" + e.status + "]"
}

func (n *nodeDraft) keys() []string {
	keys := make([]string, len(n.edges))
	for i, e := range n.edges {
		keys[i] = e.status
	}
	return keys
}

// edgeDraft is an edge in a map or a list.
type edgeDraft struct {
	status           string      // in a list: the edge's index, from 0
	pos              yamldoc.Pos // of the status or the list item
	edge             protocol.Edge
	target           yamldoc.Pos   // of the target role's name
	prompt, location *yamldoc.Node // nil if omitted
	condition        *yamldoc.Node // nil if unconditional
	when             string        // text of the condition
	failure          bool          // taken if the role can't be played
}
