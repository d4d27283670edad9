package yamldoc

import (
	"fmt"
	"strings"
)

// shape follows, line by line, how deep a text is nested and how many values it
// has at least.
type shape struct {
	bounds                 Bounds
	flow                   int  // open brackets
	quote                  byte // the quote that we are in, or 0
	inBlock                int  // least indentation of the block scalar that we are in, or -1 to learn it; 0: none
	header                 int  // indentation of the line that began it
	dashes, colons, commas int  // each stands for a value
	unclosed               int  // brackets wherever they stand, even in texts
}

// add returns what is wrong once a line takes the text beyond its bounds.
func (s *shape) add(line string) string {
	body := strings.TrimLeft(line, " ")
	if body == "" {
		return ""
	}
	opened := strings.Count(line, "[") + strings.Count(line, "{")
	closed := strings.Count(line, "]") + strings.Count(line, "}")
	if s.unclosed = max(0, s.unclosed+opened-closed); s.unclosed > 100*s.bounds.Depth {
		return "too many brackets that are not closed"
	}
	indent := len(line) - len(body)
	if s.skipsBlockScalar(indent) {
		return ""
	}
	if s.count(body) > s.bounds.Depth {
		return fmt.Sprintf("nested deeper than %d", s.bounds.Depth)
	}
	if max(s.dashes, s.colons, s.commas) > s.bounds.Nodes {
		return fmt.Sprintf("more than %d values", s.bounds.Nodes)
	}
	if s.flow == 0 && s.quote == 0 && isBlockHeader(body) {
		s.inBlock, s.header = -1, indent
	}
	return ""
}

// skipsBlockScalar reports whether a line belongs to a block scalar, whose
// brackets are only text.
func (s *shape) skipsBlockScalar(indent int) bool {
	if s.inBlock == 0 {
		return false
	}
	if s.inBlock < 0 && indent > s.header {
		s.inBlock = indent
	}
	if s.inBlock > 0 && indent >= s.inBlock {
		return true
	}
	s.inBlock = 0
	return false
}

// count follows the brackets of a line and returns the deepest nesting that it
// reaches. Outside of brackets, one only opens where a value can begin, and so
// does a quote.
func (s *shape) count(body string) int {
	deepest, entries := 0, 0
	begins, property := true, false // a value can begin here; within an anchor or tag
	for i := range len(body) {
		c := body[i]
		if s.quote != 0 {
			s.endQuote(body, i)
			begins = false
			continue
		}
		spaced := i+1 == len(body) || body[i+1] == ' '
		switch {
		case c == ' ':
			begins, property = begins || property, false
			continue
		case c == '#' && (i == 0 || body[i-1] == ' '):
			return deepest
		case (c == '[' || c == '{') && (begins || s.flow > 0):
			s.flow++
			begins = true
		case c == ']' || c == '}':
			s.flow, begins = max(0, s.flow-1), false
		case begins && (c == '"' || c == '\''):
			s.quote = c
		case begins && spaced && (c == '-' || c == '?'):
			entries++
			s.dashes++
		case c == ':' && spaced:
			s.colons++
			begins = true
		case c == ',' && s.flow > 0:
			s.commas++
			begins = true
		default:
			property = property || begins && (c == '&' || c == '!')
			begins = false
		}
		deepest = max(deepest, s.flow+entries)
	}
	return deepest
}

// endQuote leaves the quote that we are in if it ends at i.
func (s *shape) endQuote(body string, i int) {
	if body[i] == s.quote && (s.quote == '\'' || i == 0 || body[i-1] != '\\') {
		s.quote = 0
	}
}

// isBlockHeader reports whether a line ends with the header of a block scalar.
func isBlockHeader(body string) bool {
	if i := strings.Index(body, " #"); i >= 0 {
		body = body[:i]
	}
	body = strings.TrimRight(body, " \t")
	body = strings.TrimRight(body, "+-0123456789")
	head, ok := strings.CutSuffix(body, "|")
	if !ok {
		head, ok = strings.CutSuffix(body, ">")
	}
	return ok && (head == "" || strings.HasSuffix(head, " "))
}
