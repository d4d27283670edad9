package frontmatter

import "strings"

// parts are the parts of a text.
type parts struct {
	found  bool   // there is an opening line
	closed bool   // and a closing one
	line   int    // of the opening line
	block  string // between the two
	body   string
}

const marker = "---"

// split finds the block.
func split(text string) parts {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	trimmed := strings.TrimLeft(text, "\ufeff \t\r\n")
	s := parts{line: 1 + strings.Count(text[:len(text)-len(trimmed)], "\n")}
	lines := strings.Split(trimmed, "\n")
	outer := fenceOf(lines[0])
	if outer != "" {
		skip := 1 + blanks(lines[1:])
		s.line += skip
		lines = lines[skip:]
	}
	if len(lines) == 0 || lines[0] != marker {
		return s
	}
	s.found = true
	for i, line := range lines[1:] {
		if strings.TrimRight(line, " \t") != marker {
			continue
		}
		s.closed = true
		s.block = strings.Join(lines[1:1+i], "\n")
		s.body = body(lines[2+i:], outer)
		return s
	}
	return s
}

// body joins the lines behind a block. If a fence was opened before the block,
// it is closed either right behind it or at the end of the text.
func body(lines []string, outer string) string {
	lines = lines[blanks(lines):]
	if outer != "" && len(lines) > 0 {
		last := len(lines) - 1
		for last > 0 && strings.TrimSpace(lines[last]) == "" {
			last--
		}
		switch {
		case closes(lines[0], outer):
			lines = lines[1:]
			lines = lines[blanks(lines):]
		case closes(lines[last], outer):
			lines = lines[:last]
		}
	}
	return strings.Join(lines, "\n")
}

// fenceOf returns the fence that a line opens, such as "```", or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, "`") {
			return line[:n]
		}
	}
	return ""
}

// closes reports whether a line closes a fence.
func closes(line, fence string) bool {
	line = strings.TrimRight(line, " \t")
	return strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == ""
}

// blanks counts the blank lines at the start.
func blanks(lines []string) int {
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			return i
		}
	}
	return len(lines)
}
