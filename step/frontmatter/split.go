package frontmatter

import (
	"iter"
	"slices"
	"strings"
)

const marker = "---"

// invisible lists characters without a width that some models put before their first line.
const invisible = "\ufeff\u200b\u200c\u200d\u2060\u00ad"

// isMarker reports whether a line is "---", with nothing but white space behind it.
func isMarker(line string) bool {
	return strings.TrimRight(strings.TrimLeft(line, invisible), invisible+" \t") == marker
}

// lead returns the lines of a text without a prefix that may precede its block: white space, invisible
// characters, thoughts in <think>. It also returns how many lines that were.
func lead(text string) (lines []string, skipped int) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest := strings.TrimLeft(text, invisible+" \t\r\n")
	for _, tag := range []string{"think", "thinking"} {
		if thought, ok := strings.CutPrefix(rest, "<"+tag+">"); ok {
			if _, after, closed := strings.Cut(thought, "</"+tag+">"); closed {
				rest = strings.TrimLeft(after, invisible+" \t\r\n")
			}
		}
	}
	return strings.Split(rest, "\n"), strings.Count(text[:len(text)-len(rest)], "\n")
}

// split finds the blocks of a text that are in no code fence, and the one that the text begins
// with, around which a fence is tolerated. Two can share a line: what closes one may open the next.
func split(text string) iter.Seq[Block] {
	return func(yield func(Block) bool) {
		lines, skipped := lead(text)
		first, fence := opening(lines)
		for i := first; i < len(lines); i++ {
			if !isMarker(lines[i]) || fence != "" && i > first {
				fence = fenceBehind(lines[i], fence)
				continue
			}
			end := i + 1 + slices.IndexFunc(lines[i+1:], isMarker)
			b := Block{First: i == first, Line: skipped + i + 1}
			if end == i {
				const unclosed = "the block is never closed; a line with only --- must follow the last field"
				b.Err = &Error{Line: b.Line, Message: unclosed}
			} else {
				b.text = strings.Join(lines[i+1:end], "\n")
				b.Keyed = isKeyed(b.text)
			}
			if !b.First && !b.Keyed {
				continue
			}
			if b.Err == nil {
				if b.Fields, b.Err = b.read(); b.Err == nil {
					b.Body = body(lines[end+1:], fence)
				}
			}
			if !yield(b) {
				return
			}
			if b.Keyed {
				i = end - 1 // what is in a block opens no fence
			}
		}
	}
}

// opening returns the index of the first line and the fence that the line before it opens around
// a block, "" if there is none.
func opening(lines []string) (first int, fence string) {
	if fence = fenceOf(lines[0]); fence != "" {
		if first = 1 + blanks(lines[1:]); first < len(lines) && isMarker(lines[first]) {
			return first, fence
		}
	}
	return 0, ""
}

// fenceBehind returns the fence that is open behind a line, if fence is before it.
func fenceBehind(line, fence string) string {
	line = strings.TrimLeft(line, " ")
	switch {
	case fence == "":
		return fenceOf(line)
	case closes(line, fence):
		return ""
	}
	return fence
}

// isKeyed reports whether what stands between two markers is meant as fields: it begins with one, and
// the second marker is in no code fence.
func isKeyed(block string) bool {
	begins, fence := "", ""
	for line := range strings.Lines(block) {
		line = strings.TrimSpace(line)
		fence = fenceBehind(line, fence)
		if begins == "" && !strings.HasPrefix(line, "#") {
			begins = line
		}
	}
	_, ok := keyOf(begins)
	return fence == "" && (ok || strings.HasPrefix(begins, "{"))
}

// keyOf returns the key that a line begins with.
func keyOf(line string) (string, bool) {
	for i, r := range line {
		if r == ':' && (i+1 == len(line) || strings.IndexByte(" \t\n", line[i+1]) >= 0) {
			return strings.Trim(line[:i], `"' `), i > 0
		}
	}
	return "", false
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
