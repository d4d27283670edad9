package yamldoc

import "strings"

// blockText decodes a block scalar under a parent in the given column.
func blockText(t tok, parent int) (string, error) {
	indent, chomp := blockHeader(t.text, parent)
	lines := strings.Split(strings.TrimSuffix(t.body, "\n"), "\n")
	if t.body == "" {
		lines = nil
	}
	for i, line := range lines {
		body := strings.TrimLeft(line, " ")
		at := len(line) - len(body)
		if body != "" && indent < 0 {
			indent = at
		}
		switch {
		case indent >= 0 && at >= indent:
			lines[i] = line[indent:]
		case strings.TrimLeft(body, "\t") == "":
			lines[i] = ""
		default:
			return "", &Error{Pos: Pos{t.pos.Line + 1 + i, at + 1}, Message: "this line is indented less than the first one of the block"}
		}
	}
	kept := len(lines)
	for kept > 0 && lines[kept-1] == "" {
		kept--
	}
	trailing := len(lines) - kept
	text := strings.Join(lines[:kept], "\n")
	if t.text[0] == '>' {
		text = foldBlock(lines[:kept])
	}
	switch {
	case chomp == '+' && kept > 0:
		return text + strings.Repeat("\n", trailing+1), nil
	case chomp == '+':
		return strings.Repeat("\n", trailing), nil
	case chomp == '-' || kept == 0:
		return text, nil
	}
	return text + "\n", nil
}

const badHeader = "'|' or '>' can be followed by '-' or '+' and one digit, then the text begins on the next line; if this is text, put it in quotes"

// isHeader matches [|>]([+-]?[1-9]?|[1-9][+-]) .
func isHeader(s string) bool {
	signs, digits := 0, 0
	for _, c := range s[1:] {
		switch {
		case c == '+' || c == '-':
			signs++
		case c >= '1' && c <= '9':
			digits++
		default:
			return false
		}
	}
	return signs <= 1 && digits <= 1
}

// blockHeader reads a header such as "|2-". The indentation is in characters
// from the line's start, or -1 if it is that of the first line.
func blockHeader(header string, parent int) (indent int, chomp byte) {
	indent = -1
	for i := 1; i < len(header); i++ {
		switch c := header[i]; {
		case c == '+' || c == '-':
			chomp = c
		case c >= '1' && c <= '9':
			indent = max(parent-1, 0) + int(c-'0')
		}
	}
	return indent, chomp
}

// foldBlock joins lines as '>' does: a line break between two lines of text is
// a space, blank lines are line breaks, and lines that are indented more keep
// theirs.
func foldBlock(lines []string) string {
	var b strings.Builder
	blanks := 0
	started, wasSpaced := false, false
	for _, line := range lines {
		if line == "" {
			blanks++
			continue
		}
		spaced := line[0] == ' ' || line[0] == '\t'
		switch {
		case !started:
			b.WriteString(strings.Repeat("\n", blanks))
		case spaced || wasSpaced:
			b.WriteString(strings.Repeat("\n", blanks+1))
		case blanks == 0:
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Repeat("\n", blanks))
		}
		b.WriteString(line)
		started, wasSpaced, blanks = true, spaced, 0
	}
	return b.String()
}
