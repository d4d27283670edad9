package protocol

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest name of a workflow, in characters.
const MaxName = 100

// WorkflowNameRule is what a workflow's name is made of.
const WorkflowNameRule = "letters, digits, '.', '_' and '-', beginning with a letter or digit"

// WorkflowNameProblem says what is wrong with the name of a workflow, as words that
// follow the name; "" if nothing is. A good one is what the command line can tell
// from a path, a hash or an option, what no shell would run, and what is a file's
// name everywhere.
func WorkflowNameProblem(name string) string {
	switch {
	case name == "":
		return "is blank"
	case utf8.RuneCountInString(name) > MaxName:
		return "is longer than 100 characters"
	case !isPlainName(name):
		return "has characters that a workflow's name cannot have"
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return "would be taken for a file"
	case Hash(name).Valid():
		return "would be taken for a hash"
	}
	return ""
}

func isPlainName(name string) bool {
	for i, c := range name {
		switch {
		case c == unicode.ReplacementChar:
			return false
		case unicode.IsLetter(c), unicode.IsDigit(c), unicode.IsMark(c) && i > 0:
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}
