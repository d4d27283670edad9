package mustache

import (
	"fmt"
	"strings"
)

// stripStandalone drops the blank text around tags that stand alone on their
// line, line end included, so that sections, comments and delimiters can have
// lines of their own without leaving holes in the result.
func stripStandalone(tokens []token) []token {
	out := tokens[:0:0]
	for len(tokens) > 0 {
		n := lineLength(tokens)
		line := tokens[:n]
		tokens = tokens[n:]
		if !standalone(line) {
			out = append(out, line...)
			continue
		}
		for _, t := range line {
			if t.sigil != 0 {
				out = append(out, t)
			}
		}
	}
	return out
}

// lineLength is the number of tokens up to the next text that ends a line.
func lineLength(tokens []token) int {
	for i, t := range tokens {
		if t.sigil == 0 && strings.HasSuffix(t.text, "\n") {
			return i + 1
		}
	}
	return len(tokens)
}

// standalone reports whether a line has tags, none of which prints, and nothing
// else.
func standalone(line []token) bool {
	tags := 0
	for _, t := range line {
		switch t.sigil {
		case 0:
			if strings.TrimSpace(t.text) != "" {
				return false
			}
		case 'v', '&', '{':
			return false
		default:
			tags++
		}
	}
	return tags > 0
}

// builder nests tokens into sections.
type builder struct {
	tags  []Tag
	open  []node // the sections that are open, outermost first
	nodes []node // of the innermost open section, or of the template
	outer [][]node
}

func build(tokens []token) (*Template, error) {
	b := &builder{}
	for _, t := range tokens {
		if err := b.add(t); err != nil {
			return nil, err
		}
	}
	if len(b.open) > 0 {
		tag := b.open[len(b.open)-1].tag
		return nil, &SyntaxError{tag.Line, tag.Column, fmt.Sprintf("section %q is not closed with {{/%s}}", tag.Name, tag.Name)}
	}
	return &Template{nodes: b.nodes, tags: b.tags}, nil
}

func (b *builder) add(t token) error {
	switch t.sigil {
	case 0:
		b.nodes = append(b.nodes, node{text: t.text})
	case 'v', '&', '{':
		b.nodes = append(b.nodes, node{tag: b.name(Variable, t)})
	case '#':
		return b.push(Section, t)
	case '^':
		return b.push(Inverted, t)
	case '/':
		return b.pop(t)
	}
	return nil
}

// name records a tag that names a value.
func (b *builder) name(k Kind, t token) *Tag {
	tag := Tag{Kind: k, Name: t.text, Line: t.line, Column: t.column, Source: t.source}
	if t.text != "." {
		tag.Path = strings.Split(t.text, ".")
	}
	for _, section := range b.open {
		if section.tag.Kind == Section {
			tag.Within = append(tag.Within, section.tag.Name)
		}
	}
	b.tags = append(b.tags, tag)
	return &tag
}

func (b *builder) push(k Kind, t token) error {
	if len(b.open) == maxSections {
		return &SyntaxError{t.line, t.column, fmt.Sprintf("more than %d sections inside each other", maxSections)}
	}
	b.open = append(b.open, node{tag: b.name(k, t)})
	b.outer = append(b.outer, b.nodes)
	b.nodes = nil
	return nil
}

func (b *builder) pop(t token) error {
	last := len(b.open) - 1
	if last < 0 {
		return &SyntaxError{t.line, t.column, fmt.Sprintf("%s closes a section that is not open", t.source)}
	}
	section := b.open[last]
	if section.tag.Name != t.text {
		return &SyntaxError{t.line, t.column, fmt.Sprintf("%s closes a section, but the open one is %q (line %d)", t.source, section.tag.Name, section.tag.Line)}
	}
	section.body = b.nodes
	b.nodes = append(b.outer[last], section)
	b.open, b.outer = b.open[:last], b.outer[:last]
	return nil
}
