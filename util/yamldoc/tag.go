package yamldoc

import "strings"

// properties are what may stand before a value.
type properties struct {
	anchor string // without its &
	tag    string // with its !
	pos    Pos    // of the anchor
}

func (q properties) any() bool { return q.anchor != "" || q.tag != "" }

// checkTag refuses what is neither a local tag nor one of the core schema.
func checkTag(t tok) error {
	switch t.text {
	case "!", "!!str", "!!null", "!!bool", "!!int", "!!float", "!!map", "!!seq":
		return nil
	}
	if strings.ContainsAny(t.text[1:], "!<>[],\"'\t") {
		return &Error{t.pos, "this tag is not supported", t.text}
	}
	return nil
}

// isLocal reports whether a tag is one like "!include", for the caller.
func isLocal(tag string) bool { return len(tag) > 1 && tag[1] != '!' }

// tagCollection gives a list or a mapping the tag of the token that it begins with.
func tagCollection(n *Node, t tok) error {
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag = tag
	case tag == "" || tag == "!" || tag == "!!map" && n.Kind == Mapping || tag == "!!seq" && n.Kind == Sequence:
	default:
		return &Error{t.pos, "the tag does not fit this value", tag}
	}
	return nil
}

// scalar takes a token as a value.
func scalar(t tok, text string) (*Node, error) {
	n := &Node{Text: text, Pos: t.pos}
	v, msg := any(text), ""
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag = tag
	case tag == "!" || tag == "!!str":
	case tag != "":
		v, msg = resolveAs(tag, text)
	case t.kind == tokPlain:
		v, msg = resolve(text)
	}
	if msg != "" {
		return nil, failAt(t, msg)
	}
	n.Scalar = v
	return n, nil
}

// resolveAs resolves a text that has a tag of the core schema.
func resolveAs(tag, text string) (any, string) {
	v, msg := resolve(text)
	fits := false
	switch v.(type) {
	case nil:
		fits = tag == "!!null"
	case bool:
		fits = tag == "!!bool"
	case int64:
		fits = tag == "!!int" || tag == "!!float"
	case float64:
		fits = tag == "!!float"
	}
	if msg == "" && !fits {
		msg = "the tag does not fit this value"
	}
	return v, msg
}

// empty is a value that is not there.
func empty(t tok) (*Node, error) {
	n := &Node{Pos: t.pos}
	switch tag := t.props.tag; {
	case isLocal(tag):
		n.Tag, n.Scalar = tag, ""
	case tag == "!" || tag == "!!str":
		n.Scalar = ""
	case tag != "" && tag != "!!null":
		return nil, &Error{t.pos, "the value of this tag is missing", tag}
	}
	return n, nil
}
