package fence

import (
	"iter"
	"strings"
)

// markup yields what makes of a line a heading, in Markdown or HTML, be it in a list,
// a quote or a block of code; tags of any kind, so also those of fences and of the
// templates of chats; and entities, which are other characters than they look.
func markup(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		above := true // whether text may stand above: what is before our text we do not know
		for from := 0; from < len(text); {
			to := len(text)
			if n := strings.IndexAny(text[from:], "\n\r"); n >= 0 {
				to = from + n
			}
			line := text[from:to]
			size := headingMark(line)
			if size == 0 && above {
				size = underline(line)
			}
			if size > 0 && !yield(Span{from, from + size}) {
				return
			}
			above = strings.Trim(line, " \t>") != ""
			if from = to + 1; to < len(text) && text[to] == '\r' && strings.HasPrefix(text[from:], "\n") {
				from++
			}
		}
		tags(text)(yield)
	}
}

// tags yields the tags and entities of a text.
func tags(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for at := 0; ; {
			n := strings.IndexAny(text[at:], "<[&")
			if n < 0 {
				return
			}
			at += n
			if size := inline(text[at:]); size > 0 && !yield(Span{at, at + size}) {
				return
			}
			at++
		}
	}
}

// headings yields the marks at the beginnings of lines that make headings of them.
func headings(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		from := 0
		for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
			if size := headingMark(line); size > 0 && !yield(Span{from, from + size}) {
				return
			}
			from += len(line) + 1
		}
	}
}

// headingMark returns where the mark ends that makes a heading of a line, or lets its
// first words stand out as one; 0 if there is none.
func headingMark(line string) int {
	const before = " \t>+-.:()|[\\\"'`~0123456789" // may stand before it
	for i := range len(line) {
		switch c := line[i]; {
		case c == '#':
			return i + 1
		case c == '=', c == '*', c == '_':
			behind := strings.TrimPrefix(line[i+1:], `\`) // an escaped mark still looks like one
			if behind != "" && (behind[0] == c || c == '*' && behind[0] != ' ' && behind[0] != '\t') {
				return i + 1
			}
			if c != '*' && c != '_' {
				return 0
			}
		case strings.IndexByte(before, c) < 0:
			return 0
		}
	}
	return 0
}

// underline returns the length of a line that makes a heading of the one above it.
func underline(line string) int {
	marks := strings.ReplaceAll(strings.Trim(strings.TrimLeft(line, "\t >*+"), " \t"), `\`, "")
	if marks == "" || strings.Trim(marks, "-") != "" && strings.Trim(marks, "=") != "" {
		return 0
	}
	return len(line)
}

// inline returns the length of what begins a tag, as <h1, </x, <|im_start, <<SYS and
// [INST] do, or of an entity such as &nbsp;.
func inline(text string) int {
	rest := text[1:]
	switch text[0] {
	case '<':
		if rest != "" && strings.IndexByte("/|!?", rest[0]) >= 0 {
			rest = strings.TrimLeft(rest, "/|!?- ")
			return len(text) - len(rest)
		}
		// A letter alone is rather a name in a formula, but for two of tags.
		if n := run(rest, isLetter); n > 1 || n == 1 && len(rest) > 1 && (rest[1] >= '0' && rest[1] <= '9' || strings.IndexByte("bsBS", rest[0]) >= 0) {
			return len(text) - len(rest) + n
		}
	case '[':
		rest = strings.TrimPrefix(rest, "/")
		if n := run(rest, func(c byte) bool { return c >= 'A' && c <= 'Z' || c == '_' }); n > 2 && strings.HasPrefix(rest[n:], "]") {
			return len(text) - len(rest) + n + 1
		}
	case '&':
		rest = strings.TrimPrefix(rest, "#")
		if n := run(rest, func(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }); n > 0 && n < 32 && strings.HasPrefix(rest[n:], ";") {
			return len(text) - len(rest) + n + 1
		}
	}
	return 0
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// run is how many bytes of a text are of a kind.
func run(text string, is func(byte) bool) int {
	for i := range len(text) {
		if !is(text[i]) {
			return i
		}
	}
	return len(text)
}
