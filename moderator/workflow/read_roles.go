package workflow

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// schemaKeys are the names under which a role's schema may stand; the first is
// ours, the others are older.
func schemaKeys() []string { return []string{"schema", "frontmatter", "meta", "outputSchema"} }

func (d *draft) readRoles(n *yamldoc.Node) {
	if n == nil {
		return
	}
	if isUnread(n) {
		d.incomplete, d.lostRoles = true, true
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "", "roles must be a mapping from name to role, but this is %s", kindOf(n))
		d.incomplete = true
		return
	}
	for _, e := range n.Entries {
		r := d.readRole(e)
		d.roles = append(d.roles, r)
		d.roleByName[r.name] = r
		d.roleNames = append(d.roleNames, r.name)
	}
	d.targets = append(slices.Clone(d.roleNames), protocol.EndNode, protocol.SuspendNode)
}

func (d *draft) readRole(e yamldoc.Entry) *roleDraft {
	r := &roleDraft{name: e.Key, pos: e.Pos}
	what := "role " + quote(e.Key)
	n := e.Value
	if isUnread(n) {
		return r
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "give it description, goal, capabilities, procedure, output and schema", "%s must be a mapping, but this is %s", what, kindOf(n))
		return r
	}
	fields, player := roleFields(n)
	m := d.mapping(n, e.Pos, what, fields)
	text := func(key string) string {
		s, _ := d.text(m[key], key+" of "+what)
		return s
	}
	description, read := d.text(m["description"], "description of "+what)
	r.blank = read && strings.TrimSpace(description) == ""
	r.role = protocol.Role{
		Description: description, Goal: text("goal"), Procedure: text("procedure"),
		Output: text("output"), ExtractPrompt: text("extractPrompt"),
		Capabilities: d.readCapabilities(m["capabilities"], what),
	}
	d.onePlayer(m, what)
	switch player {
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		d.readChildren(r, m, what, player)
	case protocol.PlayedByPerson:
		d.readPerson(r, m["person"], what)
	case protocol.PlayedByCommand:
		d.readCommand(r, m, what)
		if r.role.Parse == "" {
			d.commandSchema(r, n, what)
			return r
		}
	}
	d.readSchema(r, n, what)
	return r
}

// roleFields are the keys of a role, by who plays it.
func roleFields(n *yamldoc.Node) ([]field, protocol.Player) {
	fields := []field{{key: "description", required: true, remedy: "one line that says what the role does"}}
	schema := []field{{key: "schema"}, {key: "frontmatter"}, {key: "meta"}, {key: "outputSchema"}} // at most one, see readSchema
	players := []field{{key: "run"}, {key: "person"}, {key: "workflow"}, {key: "all"}, {key: "each"}}
	children := slices.Concat(fields, players, schema, []field{{key: "join"}, {key: "parallel"}, {key: "workspace"}, {key: "merge"}})
	switch {
	case says(n, "run"):
		fields = append(fields, field{key: "parse"}, field{key: "timeout"})
		return slices.Concat(fields, players, schema), protocol.PlayedByCommand
	case says(n, "person"):
		return slices.Concat(fields, players, schema), protocol.PlayedByPerson
	case says(n, "workflow"):
		return append(children, field{key: "vars"}), protocol.PlayedByWorkflow
	case says(n, "all"):
		return children, protocol.PlayedByAll
	case says(n, "each"):
		return children, protocol.PlayedByEach
	}
	fields = append(fields, field{key: "goal", required: true, remedy: "who the agent is and what it is after"},
		field{key: "capabilities"}, field{key: "procedure"}, field{key: "output"})
	return slices.Concat(fields, schema, []field{{key: "extractPrompt"}}, players), protocol.PlayedByAgent
}

// says reports whether a mapping has something under a key.
func says(n *yamldoc.Node, key string) bool {
	v := n.Get(key)
	return v != nil && !isNull(v)
}

// readCapabilities reads a list of words; it is never nil.
func (d *draft) readCapabilities(n *yamldoc.Node, what string) []string {
	list := []string{}
	if n == nil || isUnread(n) {
		return list
	}
	if n.Kind != yamldoc.Sequence {
		remedy := ""
		if n.Kind == yamldoc.Scalar {
			remedy = "capabilities: [" + n.Text + "]"
		}
		d.add(n.Pos, remedy, "capabilities of %s must be a list of texts, but this is %s", what, kindOf(n))
		return list
	}
	for _, item := range n.Items {
		if s, ok := d.text(item, "a capability of "+what); ok {
			list = append(list, s)
		}
	}
	return list
}

// readSchema finds the schema of a role under one of its keys; an agent's role
// without one answers with a text. What is in it is checked later.
func (d *draft) readSchema(r *roleDraft, role *yamldoc.Node, what string) {
	var found *yamldoc.Entry
	twice := false
	for _, key := range schemaKeys() {
		for i, e := range role.Entries {
			if e.Key != key {
				continue
			}
			if found != nil {
				d.add(e.Pos, "keep one of them", "%s has both %q and %q, which mean the same", what, found.Key, e.Key)
				twice = true
				continue
			}
			found = &role.Entries[i]
		}
	}
	if found == nil && misspelt(role) {
		return // said with the key
	}
	if found == nil && r.role.Person {
		d.add(r.pos, `add "schema": the JSON Schema of the form`, "%s has no \"schema\"", what)
		return
	}
	if found == nil && r.role.Parse != "" {
		d.add(r.pos, `add "schema": the JSON Schema of what the command prints`, "%s has no \"schema\"", what)
		return
	}
	if found == nil && r.role.HasChildren() {
		if r.role.Join != "" {
			d.add(r.pos, `add "schema": the JSON Schema of what the join gives`, "%s has a \"join\", but no \"schema\"", what)
		}
		if r.role.Merge {
			r.use(moderator.MergeSchema())
			return
		}
		r.use(moderator.JoinSchema())
		return
	}
	if found == nil {
		r.use(protocol.AnswerSchema())
		return
	}
	n := found.Value
	if n.Tag != "" || twice {
		return // refused already
	}
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "schema: {type: object, properties: {…}, required: […]}", "%s of %s must be a JSON Schema, but this is %s", found.Key, what, kindOf(n))
		return
	}
	if !isTyped(n) {
		d.add(found.Pos, `add "type: object"`, "%s of %s needs a \"type\" or \"oneOf\"", found.Key, what)
		return
	}
	r.yaml = n
	r.use(n.Value())
}

// use takes a schema as the role's own.
func (r *roleDraft) use(schema any) {
	r.schema = schema
	r.statuses = statusesOf(r.schema)
	r.answers = answersOf(r.schema, r.statuses.key)
}

// misspelt reports that a role has a key which is nearly that of its schema.
func misspelt(role *yamldoc.Node) bool {
	fields, _ := roleFields(role)
	return slices.ContainsFunc(role.Entries, func(e yamldoc.Entry) bool {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.key == e.Key })
		return !known && len(nearest(e.Key, schemaKeys())) > 0
	})
}

// isTyped reports whether a schema says what it describes. An empty schema
// would accept everything that an agent says.
func isTyped(n *yamldoc.Node) bool {
	if t := n.Get("type"); t != nil && t.Kind == yamldoc.Scalar {
		if _, ok := t.Scalar.(string); ok {
			return true
		}
	}
	oneOf := n.Get("oneOf")
	return oneOf != nil && oneOf.Kind == yamldoc.Sequence
}
