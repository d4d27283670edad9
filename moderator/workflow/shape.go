package workflow

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// A shape is the short form of a JSON Schema for answers and inputs:
//
//	{ $status: [yes, no], n: integer, tags: [string], why: string?, k: integer = 2 }

// typeNames returns the type names of shapes.
func typeNames() []string { return []string{"string", "integer", "number", "boolean", "object"} }

// shape is a field parsed from its short form.
type shape struct {
	schema   *yamldoc.Node
	optional bool
	fallback *yamldoc.Node // nil without a default
}

// shapeReader converts the shapes of one role or input.
type shapeReader struct {
	*draft
	of string // what the shape belongs to, after a field's name in messages
}

// readShape converts a shape to a JSON Schema. After reporting a problem, it returns a schema that accepts
// anything.
func (d shapeReader) readShape(n *yamldoc.Node, what string) shape {
	switch {
	case isUnread(n):
		return shape{schema: n}
	case n.Kind == yamldoc.Mapping:
		if raw := n.Get("schema"); len(n.Entries) == 1 && raw != nil && raw.Kind == yamldoc.Mapping {
			return shape{schema: raw}
		}
		return shape{schema: d.objectShape(n, what)}
	case n.Kind == yamldoc.Sequence:
		return shape{schema: d.listShape(n, what)}
	}
	return d.wordShape(n, what)
}

// objectShape returns the schema of an object with the fields of a mapping.
func (d shapeReader) objectShape(n *yamldoc.Node, what string) *yamldoc.Node {
	properties := &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos}
	required := &yamldoc.Node{Kind: yamldoc.Sequence, Pos: n.Pos}
	for _, e := range n.Entries {
		field := shape{}
		about := what + "." + e.Key
		switch {
		case isSplitText(e):
			d.Add(e.Pos, splitRemedy, "%s%s has no type", about, d.of)
			continue
		case e.Key == protocol.StatusKey && e.Value.Kind == yamldoc.Sequence:
			field.schema = d.choice(e.Value, about)
		default:
			field = d.readShape(e.Value, about)
		}
		if field.fallback != nil {
			field.schema = with(field.schema, "default", field.fallback)
		} else if !field.optional {
			required.Items = append(required.Items, textNode(e.Key, e.Pos))
		}
		e.Value = field.schema
		properties.Entries = append(properties.Entries, e)
	}
	object := with(typed("object", n.Pos), "properties", properties)
	if len(required.Items) == 0 {
		return object
	}
	return with(object, "required", required)
}

// listShape returns the schema of a list of one type, or of a choice.
func (d shapeReader) listShape(n *yamldoc.Node, what string) *yamldoc.Node {
	if len(n.Items) > 1 {
		return d.choice(n, what)
	}
	if len(n.Items) == 0 {
		d.Add(n.Pos, "write [string] for a list of strings", "%s%s: [] has no item type", what, d.of)
		return typed("array", n.Pos)
	}
	item := d.readShape(n.Items[0], what+"[]")
	if item.optional || item.fallback != nil {
		d.Add(n.Items[0].Pos, "remove ? and =", "%s%s: a list item cannot be optional or have a default", what, d.of)
	}
	return with(typed("array", n.Pos), "items", item.schema)
}

// choice returns the schema of a choice from a list.
func (d shapeReader) choice(n *yamldoc.Node, what string) *yamldoc.Node {
	for _, item := range n.Items {
		word, isText := item.Scalar.(string)
		switch {
		case item.Kind != yamldoc.Scalar || isNull(item):
			d.Add(item.Pos, "list the values, or write {schema: …}", "%s%s: %s is not allowed as a value", what, d.of, kindOf(item))
		case !isText && strings.HasSuffix(what, "."+protocol.StatusKey):
			d.Add(item.Pos, asText(item), "%s%s: a status must be a string, not %s", what, d.of, kindOf(item))
		case slices.Contains(typeNames(), strings.TrimSuffix(word, "?")):
			d.Add(item.Pos, "write {schema: …} for alternatives of types", "%s%s: %s is a type in a list of "+
				"values",
				what, d.of, quote(word))
		}
	}
	if len(n.Items) == 0 {
		d.Add(n.Pos, "list the values", "%s%s: empty list of values", what, d.of)
	}
	return with(&yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos}, "enum", n)
}

// wordShape returns a type, with ? or a default.
func (d shapeReader) wordShape(n *yamldoc.Node, what string) shape {
	text, isText := n.Scalar.(string)
	word, value, hasDefault := strings.Cut(text, "=")
	word, optional := strings.CutSuffix(strings.TrimSpace(word), "?")
	word = strings.TrimSpace(word)
	anything := shape{schema: &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos}, optional: optional}
	if isNull(n) {
		d.Add(n.Pos, "a type: "+strings.Join(typeNames(), ", "), "%s%s has no type", what, d.of)
		return anything
	}
	if !isText || !slices.Contains(typeNames(), word) {
		d.Add(n.Pos, d.typeRemedy(word, n), "%s%s: unknown type %s", what, d.of, quote(n.Text))
		return anything
	}
	s := shape{schema: typed(word, n.Pos), optional: optional}
	if !hasDefault {
		return s
	}
	fallback, ok := defaultOf(word, strings.TrimSpace(value))
	switch {
	case optional:
		d.Add(n.Pos, "remove the ?", "%s%s has a default, so it is never missing", what, d.of)
	case !ok:
		d.Add(n.Pos, "write {schema: …} for other defaults", "%s%s: %s is not a %s", what, d.of,
			quote(strings.TrimSpace(value)), word)
	default:
		s.fallback = &yamldoc.Node{Kind: yamldoc.Scalar, Scalar: fallback, Text: strings.TrimSpace(value), Pos: n.Pos}
	}
	return s
}

// typeRemedy suggests a type for an unknown word.
func (d shapeReader) typeRemedy(word string, n *yamldoc.Node) string {
	known := map[string]string{"text": "string", "str": "string", "int": "integer", "float": "number", "bool": "boolean",
		"array": "[string]", "list": "[string]", "dict": "object", "any": "{schema: {}}", "null": "string?"}
	if t := known[strings.ToLower(word)]; t != "" {
		return "write " + t
	}
	if len(nearest(word, typeNames())) > 0 {
		return d.DidYouMean(word, typeNames(), "the types are")
	}
	return "a type: " + strings.Join(typeNames(), ", ") + "; for one value write {schema: {const: " + n.Text + "}}"
}

// defaultOf parses a default of a type. A text needs quotes only if it contains spaces or quotes.
func defaultOf(kind, text string) (any, bool) {
	quoted := strings.HasPrefix(text, `"`)
	if kind == "string" && !quoted {
		return text, true
	}
	doc, err := yamldoc.Parse([]byte(text), yamldoc.Bounds{})
	if err != nil || doc.Root.Kind != yamldoc.Scalar || doc.Root.Tag != "" {
		return nil, false
	}
	ok := false
	switch doc.Root.Scalar.(type) {
	case string:
		ok = kind == "string"
	case int64:
		ok = kind == "integer" || kind == "number"
	case float64:
		ok = kind == "number"
	case bool:
		ok = kind == "boolean"
	}
	return doc.Root.Scalar, ok
}

func typed(kind string, at yamldoc.Pos) *yamldoc.Node {
	return with(&yamldoc.Node{Kind: yamldoc.Mapping, Pos: at}, "type", textNode(kind, at))
}

func textNode(text string, at yamldoc.Pos) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Scalar, Scalar: text, Text: text, Pos: at}
}

// with returns a mapping with an additional entry, positioned at its value.
func with(n *yamldoc.Node, key string, value *yamldoc.Node) *yamldoc.Node {
	out := *n
	out.Entries = append(slices.Clip(n.Entries), yamldoc.Entry{Key: key, Text: key, Pos: value.Pos, Value: value})
	return &out
}
