package jsonschema

import (
	"slices"
	"strings"
)

// Problem is one violation.
type Problem struct {
	Path    string `json:"path"`    // JSON pointer into the value; "" is the whole
	Message string `json:"message"` // a predicate: "must be a string, but is null"
}

// String is the problem as one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// maxProblems is how many problems are told at once: a list of thousands of items
// may have as many each, and whoever corrects it needs the first.
const maxProblems = 50

// few keeps the first problems, and says that there are more.
func few(problems []Problem) []Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	return append(problems[:maxProblems:maxProblems], Problem{Message: "and more of this kind: correct these first"})
}

// sorted sorts problems and drops those that are there twice; nil if there are
// none.
func sorted(problems []Problem) []Problem {
	slices.SortFunc(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	if len(problems) == 0 {
		return nil
	}
	return slices.Compact(problems)
}

// InvalidError says why a schema was not compiled.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "invalid schema: " + strings.Join(lines, "; ")
}
