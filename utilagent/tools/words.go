package tools

import (
	"errors"
	"fmt"
	"strings"
)

// errQuote reports a command line that ends inside quotes.
var errQuote = errors.New("the command line ends inside quotes. Close them")

// splitWords splits a command line like a POSIX shell, but rejects whatever only a shell could do: passing
// "|" or "$HOME" as a word would run something other than what the model meant.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			if c == '\n' && strings.TrimSpace(line[i:]) != "" {
				return nil, needsShell("a second line")
			}
			continue
		case c == '\'' || c == '"':
			n, err := quoted(line[i+1:], c, &word)
			if err != nil {
				return nil, err
			}
			i += n
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case strings.IndexByte("|&;<>()$`*?", c) >= 0, !inWord && (c == '~' || c == '#'):
			return nil, needsShell(string(c))
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) > 0 && strings.Contains(words[0], "=") {
		return nil, needsShell("a variable assignment")
	}
	return words, nil
}

func needsShell(what string) error {
	return fmt.Errorf("there is no shell here, so %s has no meaning. Run one program with its arguments; quote special characters; use cwd instead of cd", what)
}

// quoted reads up to the closing quote and returns the number of bytes read.
func quoted(s string, quote byte, word *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			return i + 1, nil
		case quote == '"' && c == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		case quote == '"' && (c == '$' || c == '`'):
			return 0, needsShell(string(c))
		default:
			word.WriteByte(c)
		}
	}
	return 0, errQuote
}
