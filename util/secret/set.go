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

	"github.com/united-workforce/uwf/util/sorting"
)

// Hidden replaces a secret.
const Hidden = "[hidden key]"

// Set is a set of secrets. The zero value is empty. It is safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	all     []string
	matcher *matcher // nil if there are no secrets or it isn't built yet
}

// NewSet returns a set of secrets.
func NewSet(secrets ...string) *Set {
	s := &Set{}
	s.Add(secrets...)
	return s
}

// Add adds secrets. Secrets shorter than [Shortest] aren't hidden.
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

// Empty reports whether the set has no secrets.
func (s *Set) Empty() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all) == 0
}

// Hide replaces every secret in a text with [Hidden]. It takes time linear in the text, regardless of the
// number of secrets.
func (s *Set) Hide(text string) string {
	m := s.ready()
	if m == nil || len(text) < Shortest {
		return text
	}
	return replace(text, m.find(text))
}

// HideValue hides secrets in a JSON value.
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

// Holds reports whether a text contains a secret.
func (s *Set) Holds(text string) bool {
	m := s.ready()
	return m != nil && len(m.find(text)) > 0
}

// Split hides secrets in a text that will be continued. It returns the part that is safe to show, and the
// rest, which might be the beginning of a secret and must be prepended to the continuation.
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
		end = min(end, span.from) // it might be longer than matched
	}
	return replace(text[:end], slices.DeleteFunc(spans, func(x span) bool { return x.from >= end })), text[end:]
}

// ready returns the matcher for all secrets, nil if there are none.
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

// replace replaces each span with [Hidden].
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

// Writer hides secrets in a stream, including secrets split across writes. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	set  *Set
	to   io.Writer
	rest string
}

// NewWriter returns a writer. [Writer.Flush] writes the text held back as a possible beginning of a secret.
func (s *Set) NewWriter(to io.Writer) *Writer { return &Writer{set: s, to: to} }

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

// Flush writes the pending text. Call it at the end of the stream.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.set.Hide(w.rest)
	w.rest = ""
	_, err := io.WriteString(w.to, rest)
	return err
}

// longest is the length of the longest pattern; longer secrets are matched in pieces.
const longest = 64

// span is a part of a text.
type span struct{ from, to int }

// matcher finds patterns in a text. It ignores line breaks in patterns and text, including those escaped in
// JSON. It hashes the last eight bytes, the length of the shortest pattern, and compares the rest only if
// these start a pattern.
type matcher struct {
	patterns []string            // sorted
	begin    map[uint64][]string // by their first eight bytes
	filter   []uint64            // Bloom filter of those, because most positions match nothing
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

// pieces splits a text into patterns that cover it.
func pieces(text string) []string {
	var list []string
	for len(text) > longest {
		list = append(list, text[:longest])
		text = text[min(longest, len(text)-Shortest):]
	}
	return append(list, text)
}

// lineBreak returns the length of the line break at a position, literal or escaped in JSON; 0 if there is
// none.
func lineBreak(text string, at int) int {
	switch {
	case text[at] == '\n', text[at] == '\r':
		return 1
	case text[at] == '\\' && at+1 < len(text) && (text[at+1] == 'n' || text[at+1] == 'r'):
		return 2
	}
	return 0
}

// escapes lists how JSON and a URL escape a byte: the prefix and the number of digits. Above ASCII, a JSON
// escape stands for several bytes.
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

// unit returns the byte at a position, literal or escaped, and the length of its representation.
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

// unfinishedEscape returns the length of a possible beginning of an escape or a line break at the end of a
// text.
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

// unwrapped returns a text without line breaks and escapes, and the original position of each byte.
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

// find returns the sorted, disjoint spans of the secrets in a text.
func (m *matcher) find(text string) []span {
	spans := m.scan(text)
	if len(spans) < 2 {
		return spans
	}
	sorting.Func(spans, func(a, b span) int { return a.from - b.from })
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

// scan returns the spans of the patterns in a text.
func (m *matcher) scan(text string) (spans []span) {
	var w uint64
	var from [Shortest]int // positions of the last bytes
	for i, n := 0, 0; i < len(text); {
		b, long := text[i], 1
		switch b { // most bytes need no call
		case '\n', '\r', '\\', '%':
			if skip := lineBreak(text, i); skip > 0 {
				i += skip
				continue
			}
			b, long = unit(text, i)
		}
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

// follows reports whether a pattern matches at a position, and where it ends.
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

// unfinished returns the position of a possible beginning of a secret at the end of a text; len(text) if
// there is none.
func (m *matcher) unfinished(text string) int {
	const window = 16 * longest // including line breaks
	before := max(0, len(text)-window)
	begin := len(text) - unfinishedEscape(text) // also of a line break
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

// forms returns the texts that reveal a secret, without line breaks and at least [Shortest] long. Each line
// of a multi-line secret is separate, because output can number or indent them.
func forms(secret string) []string {
	var list []string
	lines := strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range lines {
		if len(lines) > 1 {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "-----") || isPlain(line) {
				continue // occurs in every PEM file
			}
		}
		if len(line) < Shortest {
			continue
		}
		list = append(list, line)
		for _, text := range []string{inJSON(line), strings.ReplaceAll(inJSON(line), "/", `\/`)} {
			list = append(list, text, inASCII(text, `\u%04x`), inASCII(text, `\u%04X`))
		}
		list = append(list, strings.ReplaceAll(line, " ", "+")) // form encoding
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				list = append(list, inside(e, line, before))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list) // for most secrets nearly all forms are equal
}

// inJSON returns a text as a JSON string, without quotes.
func inJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return text
	}
	return strings.TrimSuffix(strings.Trim(b.String(), "\n")[1:], `"`)
}

// inASCII escapes all characters except ASCII, the default of Python and other languages.
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

// inside returns the base64 characters that depend only on text, when before bytes (modulo three) precede it.
func inside(e *base64.Encoding, text string, before int) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
	return encoded[(before*8+5)/6 : (before+len(text))*8/6]
}
