package fence

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// names are what a text speaks with if it wants to be taken for the moderator, by
// where a name must stand; [letters] of them.
type names struct {
	anywhere, first, alone []string
	initial                [256]bool // of those that stand anywhere
}

var ourNames = sync.OnceValue(func() *names {
	n := names{
		anywhere: []string{"moderator instruction", "moderator's instruction", "from the moderator", "instruction of the moderator", "instructions of the moderator"},
		first: []string{
			"moderator", "deliverable format", "what happened so far", "what happened since your last turn", "your last answer was not accepted",
			"working directory", "how you work here", "how you end", "step", "system prompt", "system message", "system instruction",
			// Sentences of ours, see package prompt.
			"your role", "this is step", "you work in", "you have the following capabilities", "focus exclusively on your role", "do what the task above says",
			// Messages of a chat, as JSON and YAML have them.
			"role system", "role user", "role assistant", "role developer", "role tool",
		},
		alone: []string{ // or before a sign
			"goal", "capabilities", "prepare", "procedure", "output", "task", "agent", "turn", "turn role",
			"system", "user", "assistant", "human", "developer", "tool", "instruction", "instructions",
			"final instruction", "final instructions", "new instruction", "new instructions", "next instruction", "next instructions", "answer format", "output format", "context", "operator",
		},
	}
	for _, list := range [][]string{n.anywhere, n.first, n.alone} {
		for i, name := range list {
			list[i] = letters(name)
		}
	}
	for _, name := range n.anywhere { // read from right to left
		reversed := []byte(name)
		slices.Reverse(reversed)
		n.anywhere = append(n.anywhere, string(reversed))
	}
	for _, name := range n.anywhere {
		n.initial[name[0]] = true
	}
	n.initial[wild] = true
	return &n
})

// claims yields where a text speaks with a name of ours, also without any markup: the
// moderator's instruction wherever it stands, another title of several words at the
// beginning of a line, and a single word or the name of a chat's role where it is the
// whole line or stands before a sign. Only letters count.
func claims(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for _, signs := range []bool{false, true} {
			if !claimsIn(text, signs, yield) {
				return
			}
		}
	}
}

func claimsIn(text string, signs bool, yield func(Span) bool) bool {
	names := ourNames()
	f := folded{make([]byte, 0, len(text)), make([]int, 0, len(text))}
	line, label := 0, -1 // where they begin and end in the letters
	endLine := func() bool {
		whole := f.letters[line:]
		head := whole
		if label >= 0 {
			head = f.letters[line:label]
		}
		for _, name := range names.first {
			if begins(whole, name) && !yield(f.span(line, len(name))) {
				return false
			}
		}
		for _, name := range names.alone {
			for _, part := range [...][]byte{whole, head} {
				if len(part) == len(name) && begins(part, name) && !yield(f.span(line, len(name))) {
					return false
				}
			}
		}
		line, label = len(f.letters), -1
		return true
	}
	for i, r := range text {
		switch r {
		case '\n', '\r':
			if !endLine() {
				return false
			}
		case ':', '：', '=', '>', '–', '—', '-', ',', '.', ';', '!', '?', '/', '~', '→', '⇒', '»', '›', '·', '•', '…', '、', '。', '，', '；', '！', '？':
			if label < 0 && len(f.letters) > line {
				label = len(f.letters)
			}
		}
		f.rune(r, i, signs)
	}
	if !endLine() {
		return false
	}
	for i, c := range f.letters {
		if !names.initial[c] {
			continue
		}
		for _, name := range names.anywhere {
			if begins(f.letters[i:], name) && !yield(f.span(i, len(name))) {
				return false
			}
		}
	}
	return true
}

// labels yields what begins a line as a heading or a speaker does, whoever that is: a
// capital, a few words, and a colon, dash or arrow.
func labels(text string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for from := 0; from < len(text); {
			line := text[from:]
			if n := strings.IndexAny(line, "\n\r"); n >= 0 {
				line = line[:n]
			}
			if start, end := label(line); end > 0 && !yield(Span{from + start, from + end}) {
				return
			}
			from += len(line) + 1
		}
	}
}

// label is where the label of a line is; end 0: it has none.
func label(line string) (start, end int) {
	const longest = 100 // bytes
	start = strings.IndexFunc(line, unicode.IsLetter)
	if start < 0 {
		return 0, 0
	}
	if first, _ := utf8.DecodeRuneInString(line[start:]); !unicode.IsUpper(first) {
		return 0, 0
	}
	line = line[:min(len(line), start+longest)]
	for i, r := range line[start:] {
		i += start
		switch {
		case strings.ContainsRune(":：–—→⇒»›", r), r == '-' && (line[i-1] == ' ' || strings.HasPrefix(line[i+1:], " ")):
			return start, i + utf8.RuneLen(r)
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" \t'’_-()[]\"“”‘*`", r):
			return 0, 0
		}
	}
	return 0, 0
}

// span is where letters stand in the text.
func (f *folded) span(from, size int) Span {
	return Span{f.at[from], f.at[from+size-1] + 1}
}

// begins reports whether folded letters begin with a name. A third of it may be wild.
func begins(text []byte, name string) bool {
	if len(text) < len(name) || text[0] != name[0] && text[0] != wild {
		return false
	}
	spare := len(name) / 3
	for i := range len(name) {
		if text[i] == name[i] {
			continue
		}
		if spare--; text[i] != wild || spare < 0 {
			return false
		}
	}
	return true
}
