package tools

// seeker finds the lines of a text that match a pattern. It looks for the word
// that every match holds first, which is much cheaper than package regexp. A worker
// has one of its own.
type seeker struct {
	p    pattern
	word *needle // every match holds it; nil: none is known
	buf  []byte  // for the worker's files
}

func (p pattern) seeker() *seeker {
	s := &seeker{p: p}
	if p.word != "" {
		s.word = newNeedle(p.word, p.fold)
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
	if s.word != nil {
		if i := s.word.index(text[at:]); i >= 0 {
			return at + i
		}
		return -1
	}
	hit := s.p.re.FindIndex(text[at:])
	if hit == nil || at+hit[0] == len(text) && text[len(text)-1] == '\n' {
		return -1 // nothing, or an empty match behind the last line end
	}
	return at + hit[0]
}
