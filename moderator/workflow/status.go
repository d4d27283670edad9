package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// statuses describes the status in a role's answer.
type statuses struct {
	key string // field that selects the edge: "$status", or "status" if only that is declared
	// values lists the statuses that a role with several exits can answer, in file order. It excludes the
	// reserved $SUSPEND, which needs no edge.
	values []string
	// several is true for oneOf and for an enum with more than one status: each status then needs an edge.
	// Otherwise the single edge "_" suffices.
	several bool
	fixed   string // the const of a schema without oneOf, or its only choice
	free    bool   // an unrestricted text
	// vague lists the indexes of the oneOf variants whose status isn't a const.
	vague []int
}

// statusesOf reads the statuses from a schema.
func statusesOf(schema any) statuses {
	root, _ := schema.(map[string]any)
	s := statuses{key: protocol.StatusKey}
	if variants, ok := root["oneOf"].([]any); ok {
		return s.ofVariants(variants)
	}
	status, ok := property(root, s.key)
	if !ok {
		if status, ok = property(root, "status"); ok {
			s.key = "status"
		}
	}
	if fixed, ok := status["const"].(string); ok {
		s.fixed = fixed
	}
	values, _ := status["enum"].([]any)
	for _, v := range values {
		if value, ok := v.(string); ok && value != protocol.DefaultStatus && value != protocol.SuspendNode {
			s.values = append(s.values, value)
		}
	}
	s.several = len(s.values) > 1
	if len(s.values) == 1 && len(values) == 1 {
		s.fixed = s.values[0]
	}
	s.free = ok && status["type"] == "string" && status["enum"] == nil && status["const"] == nil
	return s
}

// ofVariants reads the statuses of a oneOf.
func (s statuses) ofVariants(variants []any) statuses {
	s.several = true
	if !slices.ContainsFunc(variants, has(protocol.StatusKey)) && slices.ContainsFunc(variants, has("status")) {
		s.key = "status"
	}
	seen := map[string]bool{protocol.SuspendNode: true}
	for i, variant := range variants {
		values := variantStatuses(variant, s.key)
		if len(values) == 0 {
			s.vague = append(s.vague, i)
		}
		for _, value := range values {
			if !seen[value] {
				seen[value] = true
				s.values = append(s.values, value)
			}
		}
	}
	return s
}

// variantStatuses returns the statuses of a variant: a const, or the texts of an enum; nil if they aren't
// fixed.
func variantStatuses(variant any, key string) []string {
	object, _ := variant.(map[string]any)
	status, _ := property(object, key)
	values, _ := status["enum"].([]any)
	if value, ok := status["const"]; ok {
		values = []any{value}
	}
	var texts []string
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

func has(key string) func(any) bool {
	return func(schema any) bool {
		object, _ := schema.(map[string]any)
		_, ok := property(object, key)
		return ok
	}
}

// property returns the schema of a field.
func property(schema map[string]any, name string) (map[string]any, bool) {
	properties, _ := schema["properties"].(map[string]any)
	p, ok := properties[name].(map[string]any)
	return p, ok
}

// checkStatuses checks that the edges of a role's node match the statuses in its schema.
func (d *draft) checkStatuses(r *roleDraft) {
	n := d.nodeByName[r.name]
	if n != nil {
		n = n.withoutFailures()
	}
	if n == nil || n.list || r.schema == nil || len(n.edges) == 0 && d.incomplete {
		return
	}
	for _, i := range r.statuses.vague {
		if d.Full() {
			d.Miss(1)
			continue
		}
		at, _ := d.inSchema(r.yaml, fmt.Sprintf("/oneOf/%d", i))
		d.Add(at, "properties: {$status: {const: …}}, or an enum of several",
			"variant %d of the schema of %s needs a fixed $status, which selects the edge", i+1, quote(r.name))
	}
	s := r.statuses
	onlyDefault := len(n.edges) > 0 && len(without(n.keys(), []string{protocol.DefaultStatus})) == 0
	switch {
	case onlyDefault && (!s.several || s.key != protocol.StatusKey):
	case s.several:
		d.checkSeveral(r, n)
	case s.fixed != "" && s.fixed != protocol.DefaultStatus && !slices.Contains(n.keys(), protocol.DefaultStatus):
		s.values = []string{s.fixed}
		r.statuses = s
		d.checkSeveral(r, n)
	case s.free:
		d.noteFree(r, n)
	default:
		d.checkSingle(r, n)
	}
}

// checkSeveral checks a node that needs an edge for each status.
func (d *draft) checkSeveral(r *roleDraft, n *nodeDraft) {
	values := r.statuses.values
	missing, known := without(values, n.keys()), setOf(values)
	for _, e := range n.edges {
		switch {
		case n.short && e.status == protocol.DefaultStatus:
			d.Add(e.pos, "name each: {"+strings.Join(values, ": …, ")+": …}", "%s answers %s, so one edge is not enough",
				quote(r.name), quoteList(values, " or "))
			return
		case e.status == protocol.DefaultStatus:
			d.Add(e.pos, "use the edges "+quoteList(values, ", "),
				"%s answers %s, so its node needs an edge for each of them instead of %q",
				quote(r.name), quoteList(values, " or "), protocol.DefaultStatus)
			return
		case e.status == protocol.SuspendNode: // reported with the key
		case !known[e.status]:
			candidates := missing
			if len(candidates) == 0 {
				candidates = values
			}
			d.Add(e.pos, d.DidYouMean(e.status, candidates, "it answers"), "%s never answers %s", quote(r.name), quote(e.status))
		}
	}
	for _, status := range missing {
		d.Add(n.pos, "add "+status+": {role: …, prompt: …}", "%s can answer %s, but its node has no edge for it",
			quote(r.name), quote(status))
	}
}

// checkSingle checks a node of a role that answers no status or always the same one.
func (d *draft) checkSingle(r *roleDraft, n *nodeDraft) {
	at, extra := n.pos, without(n.keys(), []string{protocol.DefaultStatus, protocol.SuspendNode})
	for _, e := range n.edges {
		if len(extra) > 0 && e.status == extra[0] {
			at = e.pos
		}
	}
	because := "the schema of " + quote(r.name) + " has no statuses"
	remedy := "name the edge _, or add statuses: answer: {$status: [" + strings.Join(extra, ", ") + "]}"
	switch {
	case len(extra) == 0:
		d.Add(at, "add _: {role: …}", "%s, so its node needs exactly one edge %q", because, protocol.DefaultStatus)
	case len(extra) == len(n.edges):
		d.Add(at, remedy, "%s, so its node needs the edge %q instead of %s", because, protocol.DefaultStatus,
			quoteList(extra, ", "))
	default:
		d.Add(at, remedy, "%s, so its node can have only the edge %q, not %s", because, protocol.DefaultStatus,
			quoteList(extra, ", "))
	}
}

// without returns the list without some names.
func without(list, remove []string) []string {
	removed := setOf(remove)
	var out []string
	for _, name := range list {
		if !removed[name] {
			out = append(out, name)
		}
	}
	return out
}

func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, name := range list {
		set[name] = true
	}
	return set
}
