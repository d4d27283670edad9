package yamldoc

import "strings"

// checkTag refuses what is neither a local tag nor one of the core schema.
func (p *builder) checkTag(tag string) error {
	switch tag {
	case "!", "!!str", "!!null", "!!bool", "!!int", "!!float", "!!map", "!!seq":
		return nil
	}
	if strings.ContainsAny(tag[1:], "!<>[],\"'\t") {
		return p.failAbout(tag, "this tag is not supported")
	}
	return nil
}

// isLocal reports whether a tag is one like "!include", for the caller.
func isLocal(tag string) bool { return len(tag) > 1 && tag[1] != '!' }

// tagCollection gives a list or a mapping its tag.
func (p *builder) tagCollection(n *Node, tag string) error {
	switch {
	case isLocal(tag):
		n.Tag = tag
	case tag == "" || tag == "!" || tag == "!!map" && n.Kind == Mapping || tag == "!!seq" && n.Kind == Sequence:
	default:
		return p.failAbout(tag, "the tag does not fit this value")
	}
	return nil
}

// scalar takes a token as a value.
func (p *builder) scalar(t tok, text string, props properties) (*Node, error) {
	n := &Node{Text: text, Pos: t.pos}
	v, msg := any(text), ""
	switch tag := props.tag; {
	case isLocal(tag):
		n.Tag = tag
	case tag == "!" || tag == "!!str":
	case tag != "":
		v, msg = resolveAs(tag, text)
	case t.kind == tokPlain:
		v, msg = resolve(text)
	}
	if msg != "" {
		return nil, p.fail("%s", msg)
	}
	n.Scalar = v
	p.next()
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
func (p *builder) empty(props properties) (*Node, error) {
	n := &Node{Pos: p.last.pos}
	switch tag := props.tag; {
	case isLocal(tag):
		n.Tag, n.Scalar = tag, ""
	case tag == "!" || tag == "!!str":
		n.Scalar = ""
	case tag != "" && tag != "!!null":
		return nil, p.failAbout(tag, "the value of this tag is missing")
	}
	if n.Pos.Line == 0 {
		n.Pos = Pos{1, 1}
	}
	return n, nil
}
