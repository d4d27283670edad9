package secret

import (
	"slices"
	"sort"
	"strings"
)

// longest is the length of the longest pattern: a longer secret is looked for in
// pieces.
const longest = 64

// span is a part of a text.
type span struct{ from, to int }

// matcher finds patterns in a text. Line breaks are passed over, in patterns and text alike, also those of
// JSON. It looks at the last eight bytes, which is what the shortest pattern has, and compares the rest only
// where these are the beginning of one.
type matcher struct {
	patterns []string            // sorted
	begin    map[uint64][]string // by their first eight bytes
	filter   []uint64            // bits of hashes of those, as most bytes begin nothing
	shift    int
}

func newMatcher(secrets []string) *matcher {
	m := &matcher{begin: map[uint64][]string{}}
	for _, s := range secrets {
		for _, form := range forms(s) {
			if form, _ = unwrapped(form); len(form) >= Shortest {
				m.patterns = append(m.patterns, pieces(form)...)
			}
		}
	}
	slices.Sort(m.patterns)
	m.patterns = slices.Compact(m.patterns)
	bits := 14
	for 1<<bits < 64*len(m.patterns) {
		bits++
	}
	m.shift, m.filter = 64-bits, make([]uint64, 1<<bits/64)
	for _, p := range m.patterns {
		var w uint64
		for i := range Shortest {
			w = w<<8 | uint64(p[i])
		}
		m.begin[w] = append(m.begin[w], p)
		h := m.hash(w)
		m.filter[h/64] |= 1 << (h % 64)
	}
	return m
}

func (m *matcher) hash(w uint64) uint64 { return w * 0x9e3779b97f4a7c15 >> m.shift }

// pieces cuts a text into patterns that cover it.
func pieces(text string) []string {
	var list []string
	for len(text) > longest {
		list = append(list, text[:longest])
		text = text[min(longest, len(text)-Shortest):]
	}
	return append(list, text)
}

// lineBreak is the length of the line break at a place of a text, as it is or in JSON; 0: there is none.
func lineBreak(text string, at int) int {
	switch {
	case text[at] == '\n', text[at] == '\r':
		return 1
	case text[at] == '\\' && at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r'):
		return 2
	}
	return 0
}

// unwrapped is a text without its line breaks, and where each of its bytes stood.
func unwrapped(text string) (string, []int) {
	var out []byte
	var from []int
	for at := 0; at < len(text); at++ {
		if n := lineBreak(text, at); n > 0 {
			at += n - 1
			continue
		}
		out, from = append(out, text[at]), append(from, at)
	}
	return string(out), from
}

// find returns where secrets stand in a text: sorted, apart from each other.
func (m *matcher) find(text string) []span {
	spans := m.scan(text)
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	joined := spans[:1]
	for _, s := range spans[1:] {
		if last := &joined[len(joined)-1]; s.from <= last.to {
			last.to = max(last.to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// scan finds the patterns in a text.
func (m *matcher) scan(text string) (spans []span) {
	var w uint64
	var from [Shortest]int // of the last bytes
	for i, n := 0, 0; i < len(text); i++ {
		if skip := lineBreak(text, i); skip > 0 {
			i += skip - 1
			continue
		}
		w = w<<8 | uint64(text[i])
		from[n%Shortest] = i
		n++
		h := m.hash(w)
		if m.filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, p := range m.begin[w] {
			if to, ok := follows(text, i+1, p[Shortest:]); ok {
				spans = append(spans, span{from: from[n%Shortest], to: to})
			}
		}
	}
	return spans
}

// follows reports whether a pattern stands at a place, and where it ends.
func follows(text string, at int, pattern string) (end int, ok bool) {
	for i := range len(pattern) {
		for at < len(text) && lineBreak(text, at) > 0 {
			at += lineBreak(text, at)
		}
		if at == len(text) || text[at] != pattern[i] {
			return 0, false
		}
		at++
	}
	return at, true
}

// unfinished returns where the end of a text begins that may be the beginning of a secret; len(text) if
// it is none.
func (m *matcher) unfinished(text string) int {
	const window = 16 * longest // line breaks included
	before := max(0, len(text)-window)
	tail, from := unwrapped(strings.TrimSuffix(text[before:], `\`)) // it may begin a line break
	begin := len(text)
	if strings.HasSuffix(text, `\`) {
		begin--
	}
	for at := max(0, len(tail)-longest); at < len(tail); at++ {
		if m.begins(tail[at:]) {
			return before + from[at]
		}
	}
	return begin
}

// begins reports whether a text is the beginning of a longer pattern.
func (m *matcher) begins(s string) bool {
	i := sort.SearchStrings(m.patterns, s)
	if i < len(m.patterns) && m.patterns[i] == s {
		i++
	}
	return i < len(m.patterns) && strings.HasPrefix(m.patterns[i], s)
}
