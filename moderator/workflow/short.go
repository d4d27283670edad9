package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Short forms are expanded as a tree before anything else is read, as the older form is. A workflow therefore
// has the same hash in either form, and only this file and shape.go know the short forms. Nodes keep their
// positions in the file.

// expand returns the tree with short forms expanded.
func (d *draft) expand(root *yamldoc.Node) *yamldoc.Node {
	d.short, d.derived = map[string]bool{}, map[string]bool{}
	roles := &yamldoc.Node{}
	if n := root.Get("roles"); n != nil {
		roles = eachEntry(n, d.expandAnswer)
	}
	return eachEntry(root, func(e yamldoc.Entry) yamldoc.Entry {
		switch e.Key {
		case "inputs":
			e.Value = eachEntry(e.Value, d.expandInput)
		case "roles":
			e.Value = eachEntry(roles, func(e yamldoc.Entry) yamldoc.Entry { return d.expandParts(e, roles) })
		case "graph":
			e.Value = eachEntry(e.Value, func(e yamldoc.Entry) yamldoc.Entry { return d.expandNode(e, roles) })
		}
		return e
	})
}

// Bounds of the expansion, far above realistic handwritten files.
const (
	maxCopied    = 4 << 20 // total bytes of role prompts on all edges
	maxCollected = 50_000  // nodes of the schema for "collect"
)

// eachEntry applies change to the entries of a mapping, and returns any other node unchanged.
func eachEntry(n *yamldoc.Node, change func(yamldoc.Entry) yamldoc.Entry) *yamldoc.Node {
	if n.Kind != yamldoc.Mapping || isUnread(n) {
		return n
	}
	out := *n
	out.Entries = slices.Clone(n.Entries)
	for i, e := range out.Entries {
		out.Entries[i] = change(e)
	}
	return &out
}

// entryOf returns a mapping with one entry.
func entryOf(key string, value *yamldoc.Node) *yamldoc.Node {
	return with(&yamldoc.Node{Kind: yamldoc.Mapping, Pos: value.Pos}, key, value)
}

// expandInput expands an input given as a shape: base: string = main.
func (d *draft) expandInput(e yamldoc.Entry) yamldoc.Entry {
	n := e.Value
	if n.Kind == yamldoc.Mapping || isUnread(n) || isNull(n) {
		return e
	}
	what := "input " + quote(e.Key)
	s := shapeReader{draft: d}.readShape(n, what)
	if s.optional {
		d.Add(n.Pos, "add a default: "+e.Key+": string = …", "%s is optional but has no default", what)
	}
	if e.Value = entryOf("schema", s.schema); s.fallback != nil {
		e.Value = with(e.Value, "default", s.fallback)
	}
	return e
}

// expandAnswer expands a role's shape to its JSON Schema.
func (d *draft) expandAnswer(e yamldoc.Entry) yamldoc.Entry {
	if !hasKey(e.Value, "answer") {
		return e
	}
	what, n := "role "+quote(e.Key), e.Value.Get("answer")
	e.Value = lacking(e.Value, "answer")
	if schemaOf(e.Value) != nil {
		d.Add(n.Pos, "keep only one", "%s has both \"answer\" and a JSON Schema, which are the same", what)
		return e
	}
	wrong := d.Count()
	switch {
	case isUnread(n):
	case n.Kind != yamldoc.Mapping:
		d.Add(n.Pos, "answer: {$status: [yes, no], why: string}",
			"answer of %s must be a mapping from field to type, not %s", what, kindOf(n))
	default:
		n = shapeReader{d, " of " + what}.objectShape(n, "answer")
	}
	if d.Count() > wrong {
		n = unread(n)
	}
	e.Value = with(e.Value, schemaKeys()[0], n)
	return e
}

// expandParts expands the parts of a role and how they are combined.
func (d *draft) expandParts(e yamldoc.Entry, roles *yamldoc.Node) yamldoc.Entry {
	what := "role " + quote(e.Key)
	e.Value = eachEntry(e.Value, func(f yamldoc.Entry) yamldoc.Entry {
		switch f.Key {
		case "all":
			f.Value = eachEntry(d.namedParts(f.Value, what), func(part yamldoc.Entry) yamldoc.Entry {
				if name, ok := textOf(part.Value); ok && name != "" {
					part.Value = entryOf("role", part.Value)
				}
				part.Value = d.prompted(part.Value, roles)
				return part
			})
		case "each":
			f.Value = d.prompted(f.Value, roles)
		}
		return f
	})
	if e.Value.Get("collect") != nil {
		d.derived[e.Key] = true
		e.Value = d.expandCollect(e.Value, what, roles)
	}
	return e
}

// textOf returns the text of a scalar text node.
func textOf(n *yamldoc.Node) (string, bool) {
	text, ok := n.Scalar.(string)
	return text, ok && n.Kind == yamldoc.Scalar && !isUnread(n)
}

// namedParts converts a list of roles to parts named after their roles.
func (d *draft) namedParts(n *yamldoc.Node, what string) *yamldoc.Node {
	if n.Kind != yamldoc.Sequence || len(n.Items) == 0 {
		return n
	}
	parts := &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos}
	seen := map[string]bool{}
	for _, item := range n.Items {
		name, ok := textOf(item)
		if !ok {
			return n // reported when it is read
		}
		if seen[name] {
			d.Add(item.Pos, "name each: {first: "+name+", second: "+name+"}", "all of %s has %s twice", what, quote(name))
			continue
		}
		seen[name] = true
		parts.Entries = append(parts.Entries, yamldoc.Entry{Key: name, Text: name, Pos: item.Pos, Value: item})
	}
	return parts
}

// prompted adds the target role's prompt to an edge or a part without one.
func (d *draft) prompted(n, roles *yamldoc.Node) *yamldoc.Node {
	if n.Kind == yamldoc.Sequence { // the conditional edges of a status
		out := *n
		out.Items = slices.Clone(n.Items)
		for i, item := range out.Items {
			out.Items[i] = d.prompted(item, roles)
		}
		return &out
	}
	target := n
	if n.Kind == yamldoc.Mapping {
		target = cmp.Or(n.Get("role"), n.Get("to"))
	}
	if target == nil || hasKey(n, "prompt") {
		return n
	}
	name, _ := textOf(target)
	role := roles.Get(name)
	if role == nil || !hasKey(role, "prompt") {
		return n
	}
	prompt := role.Get("prompt")
	text, _ := textOf(prompt)
	if strings.TrimSpace(text) == "" {
		return n // reported with the role
	}
	if d.copied += len(text); d.copied > maxCopied {
		if d.copied-len(text) <= maxCopied {
			d.Add(prompt.Pos, "write shorter prompts, or !include the text in the procedure",
				"the prompts of roles have more than %d bytes on all edges together", maxCopied)
		}
		return n
	}
	if n.Kind == yamldoc.Scalar {
		n = entryOf("role", n)
	}
	return with(lacking(n, "prompt"), "prompt", prompt)
}

// expandCollect expands "collect" to its expression and schema.
func (d *draft) expandCollect(role *yamldoc.Node, what string, roles *yamldoc.Node) *yamldoc.Node {
	n, parts := role.Get("collect"), role.Get("all")
	out := lacking(role, "collect")
	if isNull(n) || !d.yes(n, "collect", what) {
		return out
	}
	if parts == nil || parts.Kind != yamldoc.Mapping {
		if parts == nil {
			d.Add(n.Pos, `write a "join"`, "%s has \"collect\", but no \"all\"", what)
		}
		return out
	}
	if schemaOf(role) != nil || hasKey(role, "join") {
		d.Add(n.Pos, "keep only one", "%s has \"collect\" and a join", what)
		return lacking(out, "join")
	}
	for _, part := range parts.Entries {
		if part.Key == errorsField || part.Key == protocol.StatusKey {
			d.Add(part.Pos, "rename it", "all[%s] of %s: \"collect\" has a field of this name", part.Key, what)
			return out
		}
	}
	values := 0
	for _, part := range parts.Entries {
		values += 2 * sizeOf(partSchema(part.Value, roles, n.Pos), maxCollected)
		if values > maxCollected {
			d.Add(n.Pos, "write a join", "the schema of what %s collects has more than %d values", what, maxCollected)
			return out
		}
	}
	out = with(out, "join", textNode(collected(parts), n.Pos))
	return with(out, schemaKeys()[0], collectedSchema(parts, roles, hasKey(role, "merge"), n.Pos))
}

// sizeOf counts the nodes of a tree, up to a bound.
func sizeOf(n *yamldoc.Node, most int) int {
	size := 1
	for i := 0; i < len(n.Entries) && size <= most; i++ {
		size += sizeOf(n.Entries[i].Value, most-size)
	}
	for i := 0; i < len(n.Items) && size <= most; i++ {
		size += sizeOf(n.Items[i], most-size)
	}
	return size
}

// errorsField lists the errors of collected parts.
const errorsField = "errors"

// collected returns the expression that collects parts.
func collected(parts *yamldoc.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{%q: %q in results.status ? %q : %q, %q: [results[status = %[2]q].{\"part\": key, \"error\": error}]",
		protocol.StatusKey, moderator.JoinFailed, moderator.JoinFailed, moderator.JoinDone, errorsField)
	for _, e := range parts.Entries {
		fmt.Fprintf(&b, ", %q: results[key = %[1]q].output", e.Key)
	}
	return b.String() + "}"
}

// collectedSchema returns the schema of collected parts, all of which are required if the status is done.
func collectedSchema(parts, roles *yamldoc.Node, merge bool, at yamldoc.Pos) *yamldoc.Node {
	text := map[string]any{"type": "string"}
	failures := map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": []any{"part"},
		"properties": map[string]any{"part": text, "error": text}}}
	variant := func(status string, required []any) *yamldoc.Node {
		properties := entryOf(protocol.StatusKey, nodeOf(map[string]any{"const": status}, at))
		properties = with(properties, errorsField, nodeOf(failures, at))
		for _, e := range parts.Entries {
			properties = with(properties, e.Key, partSchema(e.Value, roles, at))
		}
		return with(with(typed("object", at), "properties", properties), "required", nodeOf(required, at))
	}
	some := []any{protocol.StatusKey, errorsField}
	all := slices.Clone(some)
	for _, e := range parts.Entries {
		if !hasKey(e.Value, "when") {
			all = append(all, e.Key)
		}
	}
	variants := &yamldoc.Node{Kind: yamldoc.Sequence, Pos: at, Items: []*yamldoc.Node{
		variant(moderator.JoinDone, all), variant(moderator.JoinFailed, some)}}
	if merge {
		variants.Items = append(variants.Items, nodeOf(map[string]any{"type": "object",
			"properties": map[string]any{protocol.StatusKey: map[string]any{"const": moderator.JoinConflict},
				"files": map[string]any{"type": "array", "items": text}},
			"required": []any{protocol.StatusKey, "files"}}, at))
	}
	return entryOf("oneOf", variants)
}

// partSchema returns the schema of a part's answer, if known here.
func partSchema(part, roles *yamldoc.Node, at yamldoc.Pos) *yamldoc.Node {
	anything := &yamldoc.Node{Kind: yamldoc.Mapping, Pos: at}
	var role *yamldoc.Node
	if n := part.Get("role"); n != nil {
		name, _ := textOf(n)
		role = roles.Get(name)
	}
	switch {
	case role == nil || role.Kind != yamldoc.Mapping:
		return anything
	case schemaOf(role) != nil && !isUnread(schemaOf(role)):
		return schemaOf(role)
	case isCommand(role):
		return nodeOf(moderator.CommandSchema(), at)
	case hasKey(role, "run"), hasParts(role), hasKey(role, "person"):
		return anything
	}
	return nodeOf(protocol.AnswerSchema(), at)
}

// expandNode expands a node written as one edge, and copies role prompts to its edges.
func (d *draft) expandNode(e yamldoc.Entry, roles *yamldoc.Node) yamldoc.Entry {
	role := roles.Get(e.Key)
	target, _ := textOf(e.Value)
	if target != "" || isEdge(e.Value) && !answersAny(role, e.Value) {
		key := way(e.Key, role)
		d.short[e.Key] = true
		e.Value = &yamldoc.Node{Kind: yamldoc.Mapping, Pos: e.Value.Pos,
			Entries: []yamldoc.Entry{{Key: key, Text: key, Pos: e.Pos, Value: e.Value}}}
	}
	if e.Value.Kind == yamldoc.Sequence {
		e.Value = d.prompted(e.Value, roles)
		return e
	}
	e.Value = eachEntry(e.Value, func(f yamldoc.Entry) yamldoc.Entry {
		f.Value = d.prompted(f.Value, roles)
		return f
	})
	return e
}

// edgeKeys lists the keys of an edge in a map or a list.
func edgeKeys() []string { return []string{"role", "to", "prompt", "location", "when", "condition"} }

// isEdge reports whether a node is written as its only edge.
func isEdge(n *yamldoc.Node) bool {
	return n.Kind == yamldoc.Mapping && len(n.Entries) > 0 &&
		!slices.ContainsFunc(n.Entries, func(e yamldoc.Entry) bool { return !slices.Contains(edgeKeys(), e.Key) })
}

// answersAny reports whether a role can answer one of the mapping's keys as its status. The keys then are
// statuses.
func answersAny(role, n *yamldoc.Node) bool {
	if role == nil || schemaOf(role) == nil {
		return false
	}
	s := statusesOf(schemaOf(role).Value())
	return s.free || slices.ContainsFunc(n.Entries, func(e yamldoc.Entry) bool {
		return s.fixed == e.Key || slices.Contains(s.values, e.Key)
	})
}

// way returns the status for a node's only edge: the status that uwf answers for a role that doesn't set its
// own.
func way(node string, role *yamldoc.Node) string {
	switch {
	case node == protocol.StartNode || role == nil:
	case isCommand(role):
		return moderator.CommandPassed
	case hasParts(role) && !hasKey(role, "join") && schemaOf(role) == nil:
		return moderator.JoinDone
	}
	return protocol.DefaultStatus
}

// isCommand reports whether a role is a command whose answer uwf computes.
func isCommand(role *yamldoc.Node) bool { return hasKey(role, "run") && !hasKey(role, "parse") }

// hasParts reports whether other threads play a role.
func hasParts(role *yamldoc.Node) bool {
	return hasKey(role, "all") || hasKey(role, "each") || hasKey(role, "workflow")
}

// schemaOf returns the JSON Schema of a role, nil without one.
func schemaOf(role *yamldoc.Node) *yamldoc.Node {
	for _, key := range schemaKeys() {
		if hasKey(role, key) {
			return role.Get(key)
		}
	}
	return nil
}

// lacking returns a mapping without a key.
func lacking(n *yamldoc.Node, key string) *yamldoc.Node {
	out := *n
	out.Entries = slices.DeleteFunc(slices.Clone(n.Entries), func(e yamldoc.Entry) bool { return e.Key == key })
	return &out
}

// nodeOf converts a JSON value to a tree whose nodes all have the same position.
func nodeOf(value any, at yamldoc.Pos) *yamldoc.Node {
	n := &yamldoc.Node{Pos: at}
	switch v := value.(type) {
	case map[string]any:
		n.Kind = yamldoc.Mapping
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n = with(n, key, nodeOf(v[key], at))
		}
	case []any:
		n.Kind = yamldoc.Sequence
		for _, item := range v {
			n.Items = append(n.Items, nodeOf(item, at))
		}
	default:
		n.Scalar, n.Text = v, fmt.Sprint(v)
	}
	return n
}
