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

// matcher finds patterns in a text. Line breaks are passed over, in patterns and
// text alike. It looks at the last eight bytes, which is what the shortest pattern
// has, and compares the rest only where these are the beginning of one.
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
			m.patterns = append(m.patterns, pieces(form)...)
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

// find returns where secrets stand in a text: sorted, apart from each other.
func (m *matcher) find(text string) []span {
	spans := m.scan(text)
	for _, r := range readings() {
		v, ok := r.view(text, false)
		if !ok {
			continue
		}
		found := m.scan(v.text)
		if len(found) > 0 {
			v, _ = r.view(text, true)
		}
		for _, s := range found {
			to := v.origin(s.to)
			if r.signs == separators {
				to = v.origin(s.to-1) + 1 // what stands behind the last digit is none of the secret
			}
			spans = append(spans, span{from: v.origin(s.from), to: to})
		}
	}
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

// scan finds the patterns in a text as it stands.
func (m *matcher) scan(text string) (spans []span) {
	var w uint64
	for i := range len(text) {
		c := text[i]
		if c == '\n' || c == '\r' {
			continue
		}
		w = w<<8 | uint64(c)
		h := m.hash(w)
		if m.filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, p := range m.begin[w] {
			if to, ok := follows(text, i+1, p[Shortest:]); ok {
				spans = append(spans, span{from: back(text, i, Shortest-1), to: to})
			}
		}
	}
	return spans
}

// follows reports whether a pattern stands at a place, and where it ends.
func follows(text string, at int, pattern string) (end int, ok bool) {
	for i := range len(pattern) {
		for at < len(text) && (text[at] == '\n' || text[at] == '\r') {
			at++
		}
		if at == len(text) || text[at] != pattern[i] {
			return 0, false
		}
		at++
	}
	return at, true
}

// back goes back by n bytes, line breaks not counted.
func back(text string, at, n int) int {
	for n > 0 {
		at--
		if text[at] != '\n' && text[at] != '\r' {
			n--
		}
	}
	return at
}

// unfinished returns where the end of a text begins that may be the beginning of
// a secret; len(text) if it is none.
func (m *matcher) unfinished(text string) int {
	end := m.pending(text)
	for _, r := range readings() {
		if v, ok := r.view(text, true); ok {
			end = min(end, v.origin(m.pending(v.text)), v.read)
		}
	}
	return end
}

// pending is unfinished for a text as it stands.
func (m *matcher) pending(text string) int {
	begin := len(text)
	var tail [longest]byte // filled from its end
	for at, free := len(text)-1, longest; at >= 0 && free > 0; at-- {
		if text[at] == '\n' || text[at] == '\r' {
			continue
		}
		free--
		tail[free] = text[at]
		if m.begins(string(tail[free:])) {
			begin = at
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
