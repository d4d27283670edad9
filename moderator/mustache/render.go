package mustache

import "strings"

// renderer is one run of a template over a stack of values, innermost last.
type renderer struct {
	out   strings.Builder
	stack []any
	work  int
	spans []Span
}

// Span is where a value stands in what was rendered: bytes From to To.
type Span struct{ From, To int }

// Render renders the template over a stack of JSON values. A name is looked up
// from the last value to the first; the first that has the whole path wins.
// Errors: *[MissingError], [ErrTooLarge].
func (t *Template) Render(stack ...any) (string, error) {
	text, _, err := t.RenderSpans(stack...)
	return text, err
}

// RenderSpans is Render, and tells which parts of the text are values. All else is
// the template's.
func (t *Template) RenderSpans(stack ...any) (string, []Span, error) {
	if len(stack) == 0 {
		stack = []any{nil}
	}
	r := &renderer{stack: append(make([]any, 0, len(stack)+4), stack...)}
	if err := r.nodes(t.nodes); err != nil {
		return "", nil, err
	}
	return r.out.String(), r.spans, nil
}

// Value is the value that a template stands for which is nothing but one variable, and
// that exists.
func (t *Template) Value(stack ...any) (value any, ok bool) {
	if len(t.nodes) != 1 || t.nodes[0].tag == nil || t.nodes[0].tag.Kind != Variable {
		return nil, false
	}
	r := &renderer{stack: stack}
	return r.find(t.nodes[0].tag.Path)
}

func (r *renderer) nodes(nodes []node) error {
	// An empty body counts too: sections may multiply rounds that do nothing.
	if r.work += 1 + len(nodes); r.work > maxWork {
		return ErrTooLarge
	}
	for _, n := range nodes {
		if err := r.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) node(n node) error {
	if n.tag == nil {
		return r.write(n.text)
	}
	value, found := r.find(n.tag.Path)
	switch n.tag.Kind {
	case Section:
		return r.section(value, n.body)
	case Inverted:
		if truthy(value) {
			return nil
		}
		return r.nodes(n.body)
	}
	if !found {
		return r.missing(n.tag)
	}
	from := r.out.Len()
	err := r.print(value, 0)
	if to := r.out.Len(); to > from {
		r.spans = append(r.spans, Span{from, to})
	}
	return err
}

// section renders the body once for each item of a list, once for any other
// value that is not false, 0, "" or null.
func (r *renderer) section(value any, body []node) error {
	if !truthy(value) {
		return nil
	}
	items, isList := value.([]any)
	if !isList {
		if value == true { // true has no content of its own: names stay as they are
			return r.nodes(body)
		}
		items = []any{value}
	}
	for _, item := range items {
		r.stack = append(r.stack, item)
		err := r.nodes(body)
		r.stack = r.stack[:len(r.stack)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(text string) error {
	if r.out.Len()+len(text) > maxOutput {
		return ErrTooLarge
	}
	r.out.WriteString(text)
	return nil
}
