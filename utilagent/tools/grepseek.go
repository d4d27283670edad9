package tools

import (
	"github.com/united-workforce/uwf/utilagent/tools/dfa"
)

// A word that is in so many lines, in bytes from one to the next, is no help: from
// then on the sieve is faster. It is judged after a number of lines.
const (
	minGap   = 150
	minTries = 64
)

// seeker finds the lines of a text that match a pattern. What is cheap comes
// first, and package regexp has the last word, so that how a line was found
// makes no difference. A worker has one of its own.
type seeker struct {
	p             pattern
	word          *needle      // every match holds it; nil: none is known
	common        bool         // the word is in too many lines to look for it first
	tries, passed int          // lines with the word, and bytes up to them
	sieve         *dfa.Scanner // nil: the pattern is too large for it
	buf           []byte       // for the worker's files
}

func (p pattern) seeker() *seeker {
	s := &seeker{p: p}
	if len(p.words) == 1 {
		s.word = newNeedle(p.words[0], p.fold)
	}
	if p.program != nil {
		s.sieve = p.program.NewScanner()
	}
	return s
}

// worth tells whether a text can match at all, before it is prepared.
func (s *seeker) worth(text []byte) bool { return s.word == nil || s.word.index(text) >= 0 }

// next finds the first line that matches, from at on, where a line begins.
func (s *seeker) next(text []byte, at int) (start, end int, ok bool) {
	for at < len(text) {
		i := s.candidate(text, at)
		if i < 0 {
			return 0, 0, false
		}
		start, end = lineAt(text, i)
		if s.p.re.Match(text[start:end]) {
			return start, end, true
		}
		at = end + 1
	}
	return 0, 0, false
}

// candidate returns a place in the first line that may match; -1: there is none.
func (s *seeker) candidate(text []byte, at int) int {
	switch {
	case s.word != nil && (!s.common || s.sieve == nil):
		return s.byWord(text, at)
	case s.sieve != nil:
		return s.sieve.Find(text, at)
	}
	hit := s.p.re.FindIndex(text[at:])
	if hit == nil || at+hit[0] == len(text) && text[len(text)-1] == '\n' {
		return -1 // nothing, or an empty match behind the last line end
	}
	return at + hit[0]
}

// byWord looks for the word, and holds only its lines against the sieve.
func (s *seeker) byWord(text []byte, at int) int {
	for at < len(text) {
		i := s.word.index(text[at:])
		if i < 0 {
			return -1
		}
		start, end := lineAt(text, at+i)
		s.judge(end + 1 - at)
		if s.sieve == nil || s.sieve.Find(text[start:end], 0) >= 0 {
			return at + i
		}
		at = end + 1
	}
	return -1
}

// judge counts a line that holds the word.
func (s *seeker) judge(passed int) {
	s.tries++
	s.passed += passed
	s.common = s.tries >= minTries && s.passed < minGap*s.tries
}
