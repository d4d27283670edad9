package shellguard

import "strings"

// splitter splits a command line into simple commands and those into words,
// about as a POSIX shell does.
type splitter struct {
	out   [][]string
	words []string
	word  strings.Builder
	open  bool // a word has begun, maybe an empty one
}

// commands splits a line. What a double-quoted string substitutes counts as a
// command too.
func commands(line string) [][]string {
	var s splitter
	for line != "" {
		line = s.next(line)
	}
	s.endCommand()
	return s.out
}

// next takes one item off the line.
func (s *splitter) next(line string) (rest string) {
	c, rest := line[0], line[1:]
	switch c {
	case ' ', '\t':
		s.endWord()
	case '\n', ';', '&', '|', '(', ')', '`':
		s.endCommand()
	case '\\':
		if rest == "" || rest[0] == '\n' {
			return strings.TrimPrefix(rest, "\n") // the line goes on
		}
		s.add(rest[:1])
		return rest[1:]
	case '\'', '"':
		text := quoted(rest, c)
		s.add(text)
		if _, inner, ok := strings.Cut(text, "$("); ok && c == '"' {
			s.out = append(s.out, commands(inner)...)
		}
		return strings.TrimPrefix(rest[len(text):], line[:1])
	case '$':
		if !strings.HasPrefix(rest, "(") {
			s.add("$")
		}
	default:
		s.add(line[:1])
	}
	return rest
}

func (s *splitter) add(text string) {
	s.open = true
	s.word.WriteString(text)
}

func (s *splitter) endWord() {
	if s.open {
		s.words, s.open = append(s.words, s.word.String()), false
		s.word.Reset()
	}
}

func (s *splitter) endCommand() {
	s.endWord()
	if s.words != nil {
		s.out, s.words = append(s.out, s.words), nil
	}
}

// quoted is what stands before the closing quote.
func quoted(s string, quote byte) string {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote == '"':
			i++
		case s[i] == quote:
			return s[:i]
		}
	}
	return s
}
