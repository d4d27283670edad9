package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Hidden stands in for a secret.
const Hidden = "[hidden key]"

// Set is a set of secrets. The zero value is empty. Safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	all     []string
	matcher *matcher // nil: there are no secrets, or it is not built yet
}

// NewSet makes a set.
func NewSet(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

// Add adds secrets. Those shorter than [Shortest] are not hidden.
func (s *Set) Add(secrets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range secrets {
		if len(text) >= Shortest && !slices.Contains(s.all, text) {
			s.all = append(s.all, text)
			s.matcher = nil
		}
	}
}

// Empty reports that there is nothing to hide.
func (s *Set) Empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all) == 0
}

// Hide replaces every secret in a text by [Hidden]. It takes time linear in the
// text, whatever the number of secrets.
func (s *Set) Hide(text string) string {
	m := s.ready()
	if m == nil || len(text) < Shortest {
		return text
	}
	return replace(text, m.find(text))
}

// HideValue hides what is secret in a value of JSON.
func (s *Set) HideValue(v any) any {
	if s.Empty() {
		return v
	}
	switch v := v.(type) {
	case string:
		return s.Hide(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.HideValue(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[s.Hide(key)] = s.HideValue(item)
		}
		return out
	}
	return v
}

// Holds reports whether a text holds a secret.
func (s *Set) Holds(text string) bool {
	m := s.ready()
	return m != nil && len(m.find(text)) > 0
}

// Split hides secrets in a text of which more will follow: it returns what may be shown so
// far, and the rest, which may be the beginning of a secret and must be put before what
// comes next.
func (s *Set) Split(text string) (shown, rest string) {
	m := s.ready()
	if m == nil {
		return text, ""
	}
	spans, end := m.find(text), m.unfinished(text)
	for _, span := range slices.Backward(spans) {
		if span.to <= end {
			break
		}
		end = min(end, span.from) // it may be longer than it looks
	}
	return replace(text[:end], slices.DeleteFunc(spans, func(x span) bool { return x.from >= end })), text[end:]
}

// ready is the matcher of all secrets, nil if there are none.
func (s *Set) ready() *matcher {
	s.mu.RLock()
	m, empty := s.matcher, len(s.all) == 0
	s.mu.RUnlock()
	if m != nil || empty {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.matcher == nil {
		s.matcher = newMatcher(s.all)
	}
	return s.matcher
}

// replace puts [Hidden] in place of each span.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, span := range spans {
		b.WriteString(text[at:span.from])
		b.WriteString(Hidden)
		at = span.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// Writer hides secrets in a stream, also those that come in pieces. Safe for
// concurrent use.
type Writer struct {
	mu   sync.Mutex
	set  *Set
	to   io.Writer
	rest string
}

// NewWriter makes a writer. What it holds back, as it may be the beginning of a
// secret, is written by [Writer.Flush].
func (s *Set) NewWriter(to io.Writer) *Writer { return &Writer{set: s, to: to} }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var shown string
	shown, w.rest = w.set.Split(w.rest + string(b))
	if _, err := io.WriteString(w.to, shown); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes what was held back: nothing more comes.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.set.Hide(w.rest)
	w.rest = ""
	_, err := io.WriteString(w.to, rest)
	return err
}

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

// escapes are how JSON and a URL can write each byte: the beginning, then digits. Above ASCII, JSON's stand for more.
func escapes() [2]struct {
	begin  string
	digits int
	below  uint64
} {
	return [...]struct {
		begin  string
		digits int
		below  uint64
	}{{`\u`, 4, utf8.RuneSelf}, {"%", 2, 1 << 8}}
}

// unit is the byte at a place of a text, and how many bytes it takes there, as it is or escaped.
func unit(text string, at int) (byte, int) {
	if text[at] != '\\' && text[at] != '%' {
		return text[at], 1
	}
	for _, e := range escapes() {
		digits, is := strings.CutPrefix(text[at:], e.begin)
		if is && len(digits) >= e.digits {
			if n, err := strconv.ParseUint(digits[:e.digits], 16, 16); err == nil && n < e.below {
				return byte(n), len(e.begin) + e.digits
			}
		}
	}
	return text[at], 1
}

// unfinishedEscape is the length of the end of a text that may be the beginning of an escape, or of a line break.
func unfinishedEscape(text string) int {
	at := strings.LastIndexAny(text, `\%`)
	if at < 0 {
		return 0
	}
	end := text[at:]
	for _, e := range escapes() {
		if strings.HasPrefix(e.begin, end) {
			return len(end)
		}
		digits, is := strings.CutPrefix(end, e.begin)
		if is && len(digits) < e.digits && strings.Trim(digits, "0123456789ABCDEFabcdef") == "" {
			return len(end)
		}
	}
	return 0
}

// unwrapped is a text without its line breaks and escapes, and where each of its bytes stood.
func unwrapped(text string) (string, []int) {
	var out []byte
	var from []int
	for at := 0; at < len(text); {
		if n := lineBreak(text, at); n > 0 {
			at += n
			continue
		}
		b, n := unit(text, at)
		out, from = append(out, b), append(from, at)
		at += n
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
	for i, n := 0, 0; i < len(text); {
		if skip := lineBreak(text, i); skip > 0 {
			i += skip
			continue
		}
		b, long := unit(text, i)
		w = w<<8 | uint64(b)
		from[n%Shortest] = i
		i += long
		n++
		h := m.hash(w)
		if m.filter[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, p := range m.begin[w] {
			if to, ok := follows(text, i, p[Shortest:]); ok {
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
		if at == len(text) {
			return 0, false
		}
		b, n := unit(text, at)
		if b != pattern[i] {
			return 0, false
		}
		at += n
	}
	return at, true
}

// unfinished returns where the end of a text begins that may be the beginning of a secret; len(text) if
// it is none.
func (m *matcher) unfinished(text string) int {
	const window = 16 * longest // line breaks included
	before := max(0, len(text)-window)
	begin := len(text) - unfinishedEscape(text) // of a line break, too
	tail, from := unwrapped(text[before:begin])
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

// forms lists the texts that give a secret away, without line breaks and none shorter than [Shortest]. Of
// a secret with several lines each line is one: what shows it may number or indent them.
func forms(secret string) []string {
	var list []string
	lines := strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range lines {
		if len(lines) > 1 {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "-----") || isPlain(line) {
				continue // as every PEM file has it
			}
		}
		if len(line) < Shortest {
			continue
		}
		list = append(list, line)
		for _, text := range []string{inJSON(line), strings.ReplaceAll(inJSON(line), "/", `\/`)} {
			list = append(list, text, inASCII(text, `\u%04x`), inASCII(text, `\u%04X`))
		}
		list = append(list, strings.ReplaceAll(line, " ", "+")) // as a form has it
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				list = append(list, inside(e, line, before))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list) // of most secrets nearly all are the same
}

// inJSON is a text as a string of JSON, without its quotes.
func inJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return text
	}
	return strings.TrimSuffix(strings.Trim(b.String(), "\n")[1:], `"`)
}

// inASCII writes all but ASCII as JSON's escapes, which is the default of Python and others.
func inASCII(text, format string) string {
	var b []byte
	for _, r := range text {
		if r < utf8.RuneSelf {
			b = append(b, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			b = fmt.Appendf(b, format, unit)
		}
	}
	return string(b)
}

// inside is what base64 makes of a text that begins after so many bytes, beyond a multiple of three, of
// another: only the characters that depend on it alone.
func inside(e *base64.Encoding, text string, before int) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return encoded[(before*8+5)/6 : (before+len(text))*8/6]
}
