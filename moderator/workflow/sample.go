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

// checkLists tries a join with a single result: JSONata makes no difference between one
// value and a list of it, so what gives a list of many results gives a bare value then,
// and does not fit a schema that wants a list.
func (d *draft) checkLists(r *roleDraft, what string, expr *jsonata.Expr) {
	answers := d.answersOfChildren(r)
	earlier := func(p jsonata.Path) bool { return isNew("$" + p.Names[0]) } // which are not known
	if r.schema == nil || len(answers.schemas) == 0 || d.full() || slices.ContainsFunc(expr.Reads().Bound, earlier) {
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
		return // what it needs besides is not known here
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, isList := given[name].([]any); isList || given[name] == nil || !wantsList(r, given, name) {
			continue
		}
		d.add(r.join.Pos, "put brackets around it: ["+"…"+"]",
			"%s: with a single result %s is not a list, but its schema wants one", what, quote(name))
	}
}

// wantsList reports whether a field must be a list in each variant of a schema that an answer may be.
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

// sample is a value that a schema is for, as far as that is plain.
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

// draft is a workflow file as read, in the order written, with the places of
// what may turn out to be wrong.
type draft struct {
	*report
	workflow    func(name string) (Used, error) // finds what roles run; nil: nothing is found
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
	targets    []string // roles, $END and $SUSPEND: where an edge can lead
	roleByName map[string]*roleDraft
	nodeByName map[string]*nodeDraft

	short     map[string]bool // nodes that are written as their only edge, see short.go
	copied    int             // bytes of the prompts of roles
	said      map[string]bool // what was noted and is not to be noted again
	derived   map[string]bool // roles whose schema is made of those of their parts
	versioned bool            // the file has "version: 1", as the original's have
	language  int             // [protocol.Language3] if it says what only that can
	reached   *reach.Graph
	// Of the older form, see older.go.
	older                        bool
	defaultAgent, agentOverrides *yamldoc.Node
	players                      []player

	// incomplete means that parts of the graph could not be read: checks that
	// need all of it would report what is not so.
	incomplete bool
	lostNodes  bool // whole nodes could not be read
	lostInputs bool // the inputs could not be read
	lostRoles  bool // the roles are in a file that could not be read
}

// word is a text with its place.
type word struct {
	text string
	pos  yamldoc.Pos
}

type roleDraft struct {
	name     string
	pos      yamldoc.Pos // of the name
	role     protocol.Role
	player   protocol.Player
	blank    bool          // the description was read and says nothing
	derived  bool          // its schema is made of those of others, where it is checked
	schema   any           // nil if it has the wrong shape
	yaml     *yamldoc.Node // of the schema
	statuses statuses
	answers  answers
	run      *yamldoc.Node // of a command
	env      map[string]*yamldoc.Node
	literal  map[string]bool // what the author was told of in a command
	noted    bool            // the author was told of its program
	children []childDraft    // of a role that has some
	of, join *yamldoc.Node   // of such a role; nil if left out
}

// conditionDraft is an entry of "conditions".
type conditionDraft struct {
	name        string
	pos         yamldoc.Pos // of the name
	description string
	expression  *yamldoc.Node // nil if it has the wrong shape
	text        string        // of the expression
}

type nodeDraft struct {
	name  string
	pos   yamldoc.Pos // of the name
	short bool        // it is written as its only edge
	list  bool        // transitions: the first whose condition holds is taken
	edges []*edgeDraft
	// guarded: a status has a list of edges, of which the first whose condition holds is taken.
	guarded bool
}

// at names an edge in messages.
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

// edgeDraft is an edge of a map, or an entry of a list.
type edgeDraft struct {
	status           string      // or, in a list, the entry's number, from 0
	pos              yamldoc.Pos // of the status or the entry
	edge             protocol.Edge
	target           yamldoc.Pos   // of the role that it leads to
	prompt, location *yamldoc.Node // nil if left out
	condition        *yamldoc.Node // nil: always
	when             string        // the condition's text
	failure          bool          // it is taken if the role could not be played
}
