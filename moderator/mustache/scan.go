package mustache

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// token is a piece of a template as written: text up to and including a line
// feed, or one tag. Sigil is 0 for text, else one of # ^ / ! = & { or 'v' for a
// plain variable.
type token struct {
	sigil        byte
	text         string // the text; of a tag, its trimmed content
	source       string // of a tag, with delimiters
	line, column int
}

// scanner walks over a template. The delimiters may change on the way.
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

// scanText adds literal text, one token for each line: standalone tags are
// decided line by line.
func (s *scanner) scanText(text string) {
	for line := range strings.Lines(text) {
		s.tokens = append(s.tokens, token{text: line, line: s.line, column: s.column})
		s.advance(line)
	}
}

// scanTag reads the tag that begins here.
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
		return s.fail(t, "tag "+quoteStart(s.src[s.pos:])+" is not closed with "+end)
	}
	t.source = s.src[s.pos : len(s.src)-len(rest)]
	t.text = strings.TrimSpace(content)
	s.advance(t.source)
	return s.addTag(t)
}

// addTag checks a tag and adds it.
func (s *scanner) addTag(t token) error {
	switch t.sigil {
	case '!':
	case '=':
		if err := s.setDelimiters(t); err != nil {
			return err
		}
	case '>':
		return s.fail(t, "partials ("+t.source+") are not supported: a template reads no other files")
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
		return s.fail(t, "tag "+t.source+" names nothing")
	case strings.ContainsAny(t.text, "\r\n"), strings.Contains(t.text, s.open):
		return s.fail(t, "tag "+quoteStart(t.source)+" is not closed")
	case t.text == ".":
		return nil
	}
	if slices.Contains(strings.Split(t.text, "."), "") {
		return s.fail(t, "name "+quoteStart(t.text)+" has an empty part")
	}
	return nil
}

func (s *scanner) fail(t token, message string) error {
	return &SyntaxError{Line: t.line, Column: t.column, Message: message}
}

// advance moves over text that begins at the current position.
func (s *scanner) advance(text string) {
	s.pos += len(text)
	if last := strings.LastIndexByte(text, '\n'); last >= 0 {
		s.line += strings.Count(text, "\n")
		s.column = 1
		text = text[last+1:]
	}
	s.column += utf8.RuneCountInString(text)
}

// quoteStart quotes the first line of a text, cut to what a message can carry.
func quoteStart(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	runes := []rune(strings.TrimSpace(text))
	if len(runes) > 40 {
		return `"` + string(runes[:40]) + `…"`
	}
	return `"` + string(runes) + `"`
}
