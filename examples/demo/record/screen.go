package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// screen is a terminal of unlimited height: lines follow each other, and only the last one changes. It
// supports newline, carriage return and "erase to the end of the line", and ignores colors: uwf's live view
// uses nothing else.
type screen struct {
	columns int
	lines   []line
	cursor  int    // in the last line, in characters
	held    []byte // of an incomplete character or escape
}

// line is a line of the screen with all its versions.
type line []version

// version is the text of a line from a point in time on.
type version struct {
	from time.Duration
	text string
}

func (l line) last() string {
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1].text
}

// write shows bytes at a point in time. It returns an error for an unknown escape, or a line that is longer
// than the terminal.
func (s *screen) write(at time.Duration, b []byte) error {
	b = append(s.held, b...)
	s.held = nil
	if len(s.lines) == 0 {
		s.lines = []line{nil}
	}
	for len(b) > 0 {
		n := 1
		switch {
		case b[0] == '\r':
			s.cursor = 0
		case b[0] == '\n':
			s.lines, s.cursor = append(s.lines, nil), 0
		case b[0] == '\x1b':
			var err error
			if n, err = s.escape(at, b); err != nil {
				return err
			}
			if n == 0 {
				s.held = b
				return nil
			}
		case !utf8.FullRune(b):
			s.held = b
			return nil
		default:
			var r rune
			r, n = utf8.DecodeRune(b)
			s.put(at, r)
		}
		b = b[n:]
	}
	return nil
}

// escape executes the escape at the start of b and returns its length; 0 if it is incomplete. It ignores
// colors, because the picture has its own.
func (s *screen) escape(at time.Duration, b []byte) (int, error) {
	n := 2
	for n < len(b) && (b[n] >= '0' && b[n] <= '9' || b[n] == ';') {
		n++
	}
	if n >= len(b) {
		return 0, nil
	}
	switch known := b[1] == '['; {
	case known && b[n] == 'K' && n == 2:
		s.set(at, string([]rune(s.current().last())[:s.cursor]))
	case known && b[n] == 'm':
	default:
		return 0, fmt.Errorf("the escape %q is not known here", b[:n+1])
	}
	return n + 1, nil
}

func (s *screen) current() line { return s.lines[len(s.lines)-1] }

// put writes a character at the cursor; after the last column it starts a new line.
func (s *screen) put(at time.Duration, r rune) {
	if s.cursor == s.columns {
		s.lines, s.cursor = append(s.lines, nil), 0
	}
	text := []rune(s.current().last())
	for len(text) <= s.cursor {
		text = append(text, ' ')
	}
	text[s.cursor] = r
	s.cursor++
	s.set(at, string(text))
}

// set changes the last line. A simultaneous earlier change was never visible.
func (s *screen) set(at time.Duration, text string) {
	l := s.current()
	if n := len(l); n > 0 && l[n-1].from == at {
		l = l[:n-1]
	}
	if text != l.last() || len(l) == 0 {
		l = append(l, version{at, text})
	}
	s.lines[len(s.lines)-1] = l
}

// text returns the final text.
func (s *screen) text() string {
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(strings.TrimRight(l.last(), " ") + "\n")
	}
	return b.String()
}

// scene is a part of a session: lines, and its duration.
type scene struct {
	lines  []line
	length time.Duration
}

// longestPause is the maximum pause; longer ones are shortened.
const longestPause = 700 * time.Millisecond

// scene returns the lines from the one that matches from to the one before the match of to, with long pauses
// shortened and this machine's directories abbreviated.
func (s *screen) scene(from, to string) (scene, error) {
	begin, err := regexp.Compile(from)
	if err != nil {
		return scene{}, err
	}
	end, err := regexp.Compile(to)
	if err != nil {
		return scene{}, err
	}
	lines := s.lines
	for len(lines) > 0 && !begin.MatchString(lines[0].last()) {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return scene{}, fmt.Errorf("no line matches %s", from)
	}
	for i := range lines {
		if i > 0 && to != "" && end.MatchString(lines[i].last()) {
			lines = lines[:i]
			break
		}
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1].last()) == "" {
		lines = lines[:len(lines)-1]
	}
	return retime(lines), nil
}

// retime makes a scene start immediately and shortens its pauses. Versions are in chronological order from
// line to line.
func retime(lines []line) scene {
	temporary := regexp.MustCompile(`/\S*/uwf-demo-[0-9]+`)
	out := scene{lines: make([]line, len(lines))}
	before, cut := time.Duration(-1), time.Duration(0)
	for i, l := range lines {
		for _, v := range l {
			if before < 0 {
				before, cut = v.from, v.from
			}
			if pause := v.from - before; pause > longestPause {
				cut += pause - longestPause
			}
			before = v.from
			out.length = v.from - cut
			out.lines[i] = append(out.lines[i], version{out.length, temporary.ReplaceAllString(v.text, "~")})
		}
	}
	return out
}

// columns returns the length of the longest line.
func (s scene) columns() int {
	longest := 0
	for _, l := range s.lines {
		for _, v := range l {
			longest = max(longest, utf8.RuneCountInString(strings.TrimRight(v.text, " ")))
		}
	}
	return longest
}

// when returns the time at which a line first matches.
func (s scene) when(at *regexp.Regexp) (time.Duration, bool) {
	for _, l := range s.lines {
		for _, v := range l {
			if at.MatchString(v.text) {
				return v.from, true
			}
		}
	}
	return 0, false
}
