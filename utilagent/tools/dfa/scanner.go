package dfa

import (
	"encoding/binary"
	"slices"
)

// The ids of special states. Only they need a look at each byte.
const (
	unknown = iota // is not built yet
	hit            // the expression has matched
	idle           // within a line, nothing has begun to match
	firstID
)

const (
	maxStates = 1500 // at 512 bytes and what they consist of
	// minUse is how many bytes each state must have been good for before the
	// states are thrown away; an expression that does not reach that is given up.
	minUse = 20
)

// state is a set of nodes that wait for a byte or the end of the line.
type state struct {
	nodes []int32
	ends  bool // it matches if the line ends here
}

// Scanner searches texts for a program. It is not safe for concurrent use.
type Scanner struct {
	p      *Program
	next   [][256]uint16 // by state and byte
	states []state       // by id
	ids    map[string]uint16
	begin  uint16     // where a line begins
	boring [256]uint8 // 1 for the bytes that lead from idle to idle
	gaveUp bool
	work   int // bytes since the states were last thrown away

	walk walker
	key  []byte
}

// NewScanner returns a scanner.
func (p *Program) NewScanner() *Scanner {
	s := &Scanner{p: p, walk: walker{p: p, seen: make([]uint32, len(p.nodes))}}
	s.reset()
	return s
}

// reset throws all states away.
func (s *Scanner) reset() {
	s.next = append(s.next[:0], make([][256]uint16, idle)...)
	s.states = append(s.states[:0], make([]state, idle)...)
	s.ids = map[string]uint16{}
	s.work = 0
	s.walk.clear()
	s.walk.add(s.p.start, false)
	s.begin = s.settle()
	if s.begin == hit {
		return // every line may match
	}
	s.walk.clear()
	s.walk.add(s.p.start, true)
	s.begin = s.settle()
	for b := range 256 {
		s.boring[b] = 0
		if s.step(idle, byte(b)) == idle {
			s.boring[b] = 1
		}
	}
}

// Find returns a place in the first line that may match, from at on, where a
// line must begin; -1 if there is none. A line's end belongs to it.
func (s *Scanner) Find(text []byte, at int) int {
	if s.gaveUp || s.begin == hit {
		return at
	}
	id := s.begin
	from := at
	if id == idle {
		at = s.skip(text, at)
	}
	for i := at; i < len(text); i++ {
		to := s.next[id][text[i]]
		if to < firstID {
			if to == unknown {
				s.work += i - from
				from = i
				to = s.step(id, text[i])
			}
			switch to {
			case hit:
				s.work += i - from
				return i
			case idle:
				i = s.skip(text, i+1) - 1
			}
		}
		id = to
	}
	s.work += len(text) - from
	if len(text) > 0 && text[len(text)-1] != '\n' && s.states[id].ends {
		return len(text)
	}
	return -1
}

// skip passes over boring bytes. Here most time is spent: no step depends on the
// one before.
func (s *Scanner) skip(text []byte, at int) int {
	boring := &s.boring
	for ; at+8 <= len(text); at += 8 {
		t := text[at : at+8 : at+8]
		if boring[t[0]]&boring[t[1]]&boring[t[2]]&boring[t[3]]&boring[t[4]]&boring[t[5]]&boring[t[6]]&boring[t[7]] == 0 {
			break
		}
	}
	for at < len(text) && boring[text[at]] == 1 {
		at++
	}
	return at
}

// step builds where a byte leads.
func (s *Scanner) step(id uint16, b byte) uint16 {
	to := s.begin
	if b == '\n' {
		if s.states[id].ends {
			to = hit
		}
		s.next[id][b] = to
		return to
	}
	s.walk.clear()
	for _, n := range s.states[id].nodes {
		if node := &s.p.nodes[n]; node.op == opByte && node.set.has(b) {
			s.walk.add(node.out, false)
		}
	}
	s.walk.add(s.p.start, false)
	if !s.walk.match && len(s.states) == maxStates {
		return s.flush()
	}
	to = s.settle()
	s.next[id][b] = to
	return to
}

// flush makes room for the state that the walk has reached.
func (s *Scanner) flush() uint16 {
	if s.work < minUse*maxStates {
		s.gaveUp = true
		return hit // the caller finds out about this line, and then about every one
	}
	nodes := slices.Clone(s.walk.nodes)
	s.reset()
	s.walk.clear()
	for _, n := range nodes {
		s.walk.add(n, false)
	}
	return s.settle()
}

// settle returns the id of the state that the walk has reached.
func (s *Scanner) settle() uint16 {
	if s.walk.match {
		return hit
	}
	nodes := s.walk.nodes
	slices.Sort(nodes)
	s.key = s.key[:0]
	for _, n := range nodes {
		s.key = binary.LittleEndian.AppendUint16(s.key, uint16(n))
	}
	if id, ok := s.ids[string(s.key)]; ok {
		return id
	}
	id := uint16(len(s.states))
	s.ids[string(s.key)] = id
	s.states = append(s.states, state{nodes: slices.Clone(nodes), ends: s.walk.ends(slices.Clone(nodes))})
	s.next = append(s.next, [256]uint16{})
	return id
}

// walker collects the nodes that can be reached without taking a byte.
type walker struct {
	p     *Program
	nodes []int32 // that take a byte, or wait for the end of the line
	match bool
	seen  []uint32 // by node: the round in which it was last reached
	round uint32
	stack []int32
}

func (w *walker) clear() {
	w.nodes, w.match = w.nodes[:0], false
	w.round++
}

// add adds what is reached from a node. begin: here a line begins.
func (w *walker) add(from int32, begin bool) {
	w.stack = append(w.stack[:0], from)
	for len(w.stack) > 0 {
		at := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if w.seen[at] == w.round {
			continue
		}
		w.seen[at] = w.round
		n := &w.p.nodes[at]
		switch n.op {
		case opByte, opEnd:
			w.nodes = append(w.nodes, at)
		case opMatch:
			w.match = true
		case opSplit:
			w.stack = append(w.stack, n.alt, n.out)
		case opJump:
			w.stack = append(w.stack, n.out)
		case opBegin:
			if begin {
				w.stack = append(w.stack, n.out)
			}
		}
	}
}

// ends tells whether nodes match if the line ends behind them. A ^ that comes
// then is taken for true.
func (w *walker) ends(nodes []int32) bool {
	w.clear()
	for len(nodes) > 0 && !w.match {
		w.nodes = w.nodes[:0]
		for _, n := range nodes {
			if w.p.nodes[n].op == opEnd {
				w.add(w.p.nodes[n].out, true)
			}
		}
		nodes = append(nodes[:0], w.nodes...)
	}
	return w.match
}
