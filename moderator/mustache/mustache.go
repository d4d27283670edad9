// Package mustache renders the templates of edges.
//
// It supports variables ({{x}}, {{{x}}} and {{&x}} are equivalent: nothing is escaped, because prompts aren't
// HTML), sections, inverted sections, comments and set delimiters. It supports neither partials nor lambdas:
// a template uses only the given values, and its output is never parsed as a template.
//
// It is strict where mustache is lenient: a missing variable is an error, because an agent that gets an
// incomplete prompt invents what is missing. A section over a missing name is omitted, so use sections for
// optional values. A null value exists and prints as nothing.
//
// Values are JSON values and print as in JavaScript: 1e+21, arrays joined by commas. Only objects print as
// JSON instead of [object Object].
package mustache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of a template and of its output: far above any realistic prompt, and low enough to protect memory
// and time.
const (
	maxTags     = 10_000
	maxSections = 64      // nested sections
	maxOutput   = 8 << 20 // bytes rendered
	maxWork     = 4 << 20 // nodes rendered; nested sections can loop without printing
	maxValue    = 256     // depth of a printed value
)

// Template is a parsed template. It is immutable.
type Template struct {
	nodes []node
	tags  []Tag
}

// Kind is the kind of a tag.
type Kind string

// The kinds of tags with a name.
const (
	Variable Kind = "variable"
	Section  Kind = "section"
	Inverted Kind = "inverted section"
)

// Tag is a tag that uses a value. Checkers use it to find the names in a template.
type Tag struct {
	Kind Kind
	Name string   // as written: "a.b", or "." for the value of the section
	Path []string // Name split at the dots; nil for "."
	// Within lists the names of the enclosing sections, outermost first. Inside them a name can also be found
	// in the section's value. Inverted sections have no value and are omitted.
	Within []string
	// Join is the separator of list items in {{list | join: ", "}}; nil means a comma.
	Join   *string
	Line   int    // in the template, from 1
	Column int    // from 1, in characters
	Source string // with its delimiters
}

// node is a piece of a template: literal text if tag is nil, otherwise a tag with the pieces up to its
// closing tag.
type node struct {
	text string
	tag  *Tag
	body []node
}

// Parse parses a template. Every error is a *[SyntaxError].
func Parse(src string) (*Template, error) {
	tokens, err := scan(src)
	if err != nil {
		return nil, err
	}
	return build(stripStandalone(tokens))
}

// Tags returns the tags that use a value, in source order.
func (t *Template) Tags() []Tag { return t.tags }

// token is a piece of a template: text up to and including a newline, or one tag. Sigil is 0 for text, one of
// # ^ / ! = & {, or 'v' for a plain variable.
type token struct {
	sigil        byte
	text         string // the text, or the trimmed content of a tag
	source       string // the whole tag, with delimiters
	line, column int
}

// scanner scans a template, whose delimiters can change.
type scanner struct {
	src           string
	pos           int
	line, column  int
	open, closing string
	tokens        []token
	tags          int
}

func scan(src string) ([]token, error) {
	s := &scanner{src: src, line: 1, column: 1, open: "{{", closing: "}}"}
	for s.pos < len(src) {
		next := strings.Index(src[s.pos:], s.open)
		if next < 0 {
			next = len(src) - s.pos
		}
		s.scanText(src[s.pos : s.pos+next])
		if s.pos == len(src) {
			break
		}
		if err := s.scanTag(); err != nil {
			return nil, err
		}
	}
	return s.tokens, nil
}

// scanText adds literal text, one token per line, because standalone tags are detected by line.
func (s *scanner) scanText(text string) {
	for line := range strings.Lines(text) {
		s.tokens = append(s.tokens, token{text: line, line: s.line, column: s.column})
		s.advance(line)
	}
}

// scanTag scans the tag at the current position.
func (s *scanner) scanTag() error {
	body := s.src[s.pos+len(s.open):]
	trimmed := strings.TrimLeft(body, " \t\r\n")
	t := token{sigil: 'v', line: s.line, column: s.column}
	end := s.closing
	if trimmed != "" && strings.IndexByte("#^/!=&{>", trimmed[0]) >= 0 {
		t.sigil = trimmed[0]
		trimmed = trimmed[1:]
		switch t.sigil {
		case '{':
			end = "}" + s.closing
		case '=':
			end = "=" + s.closing
		}
	}
	content, rest, found := strings.Cut(trimmed, end)
	if !found {
		return s.fail(t, "tag "+quoteStart(s.src[s.pos:])+" has no closing "+end)
	}
	t.source = s.src[s.pos : len(s.src)-len(rest)]
	t.text = strings.TrimSpace(content)
	s.advance(t.source)
	return s.addTag(t)
}

// addTag validates a tag and adds it.
func (s *scanner) addTag(t token) error {
	switch t.sigil {
	case '!':
	case '=':
		if err := s.setDelimiters(t); err != nil {
			return err
		}
	case '>':
		return s.fail(t, "partials ("+t.source+") are not supported")
	default:
		if err := s.checkName(t); err != nil {
			return err
		}
	}
	if s.tags++; s.tags > maxTags {
		return s.fail(t, fmt.Sprintf("more than %d tags", maxTags))
	}
	s.tokens = append(s.tokens, t)
	return nil
}

func (s *scanner) setDelimiters(t token) error {
	parts := strings.Fields(t.text)
	if len(parts) != 2 || strings.Contains(t.text, "=") {
		return s.fail(t, "set delimiters with {{=<% %>=}}: two words without =, not "+t.source)
	}
	s.open, s.closing = parts[0], parts[1]
	return nil
}

func (s *scanner) checkName(t token) error {
	switch {
	case t.text == "":
		return s.fail(t, "tag "+t.source+" is empty")
	case strings.ContainsAny(t.text, "\r\n"), strings.Contains(t.text, s.open):
		return s.fail(t, "tag "+quoteStart(t.source)+" is not closed")
	case t.text == ".":
		return nil
	}
	name := t.text
	if list, _, ok := joined(t); ok {
		name = list
	}
	if slices.Contains(strings.Split(name, "."), "") {
		return s.fail(t, "name "+quoteStart(t.text)+" has an empty part")
	}
	return nil
}

func (s *scanner) fail(t token, message string) error {
	return &SyntaxError{Line: t.line, Column: t.column, Message: message}
}

// advance moves past text at the current position.
func (s *scanner) advance(text string) {
	s.pos += len(text)
	if last := strings.LastIndexByte(text, '\n'); last >= 0 {
		s.line += strings.Count(text, "\n")
		s.column = 1
		text = text[last+1:]
	}
	s.column += utf8.RuneCountInString(text)
}

// quoteStart quotes the first line of a text, shortened for a message.
func quoteStart(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	runes := []rune(strings.TrimSpace(text))
	if len(runes) > 40 {
		return `"` + string(runes[:40]) + `…"`
	}
	return `"` + string(runes) + `"`
}

// stripStandalone removes the whitespace and newline around tags that are alone on their line, so that
// sections, comments and delimiters can have their own lines without leaving blank lines in the output.
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

// lineLength returns the number of tokens up to the next end of a line.
func lineLength(tokens []token) int {
	for i, t := range tokens {
		if t.sigil == 0 && strings.HasSuffix(t.text, "\n") {
			return i + 1
		}
	}
	return len(tokens)
}

// standalone reports whether a line contains only whitespace and tags that don't print.
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
	open  []node // open sections, outermost first
	nodes []node // nodes of the innermost open section, or of the template
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
		return nil, &SyntaxError{tag.Line, tag.Column, fmt.Sprintf("section %q has no closing {{/%s}}", tag.Name,
			tag.Name)}
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

// joined parses {{list | join: ", "}}; join is the only filter.
func joined(t token) (list, separator string, ok bool) {
	list, filter, _ := strings.Cut(t.text, "|")
	word, isJoin := strings.CutPrefix(strings.TrimSpace(filter), "join:")
	if word = strings.TrimSpace(word); !isJoin || len(word) < 2 || t.sigil == '#' || t.sigil == '^' {
		return "", "", false
	}
	quote, word := word[:1], word[1:]
	separator, quoted := strings.CutSuffix(word, quote)
	list = strings.TrimSpace(list)
	ok = quoted && strings.Contains(`"'`, quote) && !strings.Contains(separator, quote) && list != ""
	return list, strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(separator), ok
}

// name records a tag that uses a value.
func (b *builder) name(k Kind, t token) *Tag {
	tag := Tag{Kind: k, Name: t.text, Line: t.line, Column: t.column, Source: t.source}
	if list, separator, ok := joined(t); ok {
		tag.Name, tag.Join = list, &separator
	}
	if tag.Name != "." {
		tag.Path = strings.Split(tag.Name, ".")
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
		return &SyntaxError{t.line, t.column, fmt.Sprintf("sections are nested more than %d levels deep", maxSections)}
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
		return &SyntaxError{t.line, t.column, fmt.Sprintf("%s closes a section, but the open one is %q (line %d)",
			t.source, section.tag.Name, section.tag.Line)}
	}
	section.body = b.nodes
	b.nodes = append(b.outer[last], section)
	b.open, b.outer = b.open[:last], b.outer[:last]
	return nil
}

// ErrTooLarge means that a template's output exceeds the bounds.
var ErrTooLarge = errors.New("output too large")

// SyntaxError is a template that can't be parsed.
type SyntaxError struct {
	Line, Column int // from 1; columns count characters
	Message      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// MissingError is a variable without a value.
type MissingError struct {
	Name         string // the whole path
	Line, Column int    // of the tag, from 1
	Nearest      []string
	Known        []string // names that exist at that place, sorted; at most a few
	Why          string   // reason to show instead of them; "" if unknown
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message())
}

// Message returns the error without its position.
func (e *MissingError) Message() string {
	text := fmt.Sprintf("variable %q does not exist", e.Name)
	switch {
	case e.Why != "":
		return text + ": " + e.Why
	case len(e.Nearest) > 0:
		return text + "; did you mean " + quoteList(e.Nearest) + "?"
	case len(e.Known) > 0:
		return text + "; known: " + quoteList(e.Known)
	}
	return text
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
