package yamldoc

import (
	"fmt"
	"strings"
)

// guard refuses texts on which the library's lexer needs quadratic time or much
// memory, before it sees them. It looks at characters wherever they stand, so it
// refuses nothing that an honest file comes near; the limits proper are held on
// the tokens and while the tree is built.
func guard(text string, b Bounds) error {
	for _, mark := range []string{"[", "{", ",", "- ", "? ", ": "} {
		if strings.Count(text, mark) > 4*b.Nodes {
			return &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("more than %d values", b.Nodes)}
		}
	}
	for _, pair := range []string{"[]", "{}"} { // a bracket costs the library a kilobyte
		if strings.Count(text, pair[:1])-strings.Count(text, pair[1:]) > 100*b.Depth {
			return &Error{Pos: Pos{1, 1}, Message: fmt.Sprintf("nested deeper than %d", b.Depth)}
		}
	}
	c := cost{size: len(text)}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if msg := c.add(strings.TrimSuffix(line, "\n")); msg != "" {
			return &Error{Pos: Pos{n, 1}, Message: msg}
		}
	}
	return nil
}

// lexerBudget bounds the work that the library's lexer can be made to do, in
// character visits; 250 million are about a tenth of a second.
const lexerBudget = 250_000_000

// cost estimates what the library's lexer will do where it is quadratic.
type cost struct {
	size   int // of the text
	blanks int // blank lines just before this one
	visits int
}

// add returns what is wrong once a line makes the text too costly.
func (c *cost) add(line string) string {
	if strings.Trim(line, " ") == "" {
		c.blanks++
		// Blank lines are cut off a block scalar one at a time; each time, all
		// of it is copied, which costs more than a visit.
		if 5*c.blanks*c.size > lexerBudget {
			return "too many blank lines in a row for a text of this size"
		}
		return ""
	}
	c.blanks = 0
	// In double quotes, every tab looks for the end of its line.
	c.visits += strings.Count(line, "\t") * len(line)
	// Every '<' counts the run that it begins.
	c.visits += longestRun(line, '<') * strings.Count(line, "<")
	if c.visits > lexerBudget {
		return "too many tabs or '<' in long lines"
	}
	return ""
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
