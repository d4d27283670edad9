// Package dfa finds the lines of a text in which a regular expression may
// match, several times faster than package regexp finds them.
//
// It is a sieve: no line that matches is left out, but a line that is found
// need not match, so the caller asks package regexp about it. That keeps the
// automaton small. It works on bytes, knows a character outside ASCII only as
// "some bytes from 0x80 on" (unless it stands alone in the expression), and
// takes every word boundary for one.
//
// The automaton is built while a text is read, as far as the text needs it, in
// bounded memory. An expression whose automaton grows for ever is given up:
// then every line may match.
package dfa

import (
	"regexp/syntax"
	"unicode/utf8"
)

// op is what a node does.
type op uint8

const (
	opFail  op = iota
	opMatch    // the expression has matched
	opByte     // takes a byte of set, goes to out
	opSplit    // goes to out and to alt
	opJump     // goes to out
	opBegin    // goes to out where a line begins
	opEnd      // goes to out where a line ends
)

// node is a state of the automaton that is not deterministic.
type node struct {
	op       op
	out, alt int32
	set      set
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

// Program is an expression that can be searched for, by any number of
// [Scanner]s at once.
type Program struct {
	nodes []node
	start int32
}

// maxNodes bounds the work for each new state.
const maxNodes = 5000

// Compile makes a program of an expression that matches within a line: nothing
// in it may match "\n". Its ^ and $ are a line's. It returns nil for one that is
// too large to be worth it.
func Compile(re *syntax.Regexp) *Program {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxNodes/4 {
		return nil
	}
	p := &Program{nodes: make([]node, len(prog.Inst)), start: int32(prog.Start)}
	for i := range prog.Inst {
		p.translate(int32(i), &prog.Inst[i])
	}
	return p
}

// translate makes the node at, and more behind the others if it takes more.
func (p *Program) translate(at int32, in *syntax.Inst) {
	n := node{op: opFail, out: int32(in.Out), alt: int32(in.Arg)}
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		n.op = opSplit
	case syntax.InstCapture, syntax.InstNop:
		n.op = opJump
	case syntax.InstMatch:
		n.op = opMatch
	case syntax.InstEmptyWidth:
		n.op = width(syntax.EmptyOp(in.Arg))
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		n = p.character(in)
	}
	p.nodes[at] = n
}

// width is the node of an assertion. What it asserts about words is left open.
func width(what syntax.EmptyOp) op {
	switch {
	case what&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0:
		return opBegin
	case what&(syntax.EmptyEndLine|syntax.EmptyEndText) != 0:
		return opEnd
	}
	return opJump
}

// character takes one character.
func (p *Program) character(in *syntax.Inst) node {
	out := int32(in.Out)
	if r, ok := alone(in); ok {
		return p.exactly(r, out)
	}
	ascii := node{op: opByte, out: out}
	for b := range byte(utf8.RuneSelf) {
		if b != '\n' && in.MatchRune(rune(b)) {
			ascii.set.add(b)
		}
	}
	if !beyondASCII(in) {
		return ascii
	}
	many := p.add(node{op: opByte})
	again := p.add(node{op: opSplit, out: many, alt: out})
	p.nodes[many].out = again
	for b := utf8.RuneSelf; b < 256; b++ {
		p.nodes[many].set.add(byte(b))
	}
	return node{op: opSplit, out: p.add(ascii), alt: many}
}

// alone returns the only character that an instruction takes, if it is one
// outside ASCII that has its bytes to itself: an invalid byte counts as U+FFFD.
func alone(in *syntax.Inst) (rune, bool) {
	fold := in.Op == syntax.InstRune && syntax.Flags(in.Arg)&syntax.FoldCase != 0
	if len(in.Rune) != 1 || fold || in.Rune[0] < utf8.RuneSelf || in.Rune[0] == utf8.RuneError || !utf8.ValidRune(in.Rune[0]) {
		return 0, false
	}
	return in.Rune[0], true
}

// exactly takes the bytes of a character one after another.
func (p *Program) exactly(r rune, out int32) node {
	b := utf8.AppendRune(nil, r)
	for i := len(b) - 1; ; i-- {
		n := node{op: opByte, out: out}
		n.set.add(b[i])
		if i == 0 {
			return n
		}
		out = p.add(n)
	}
}

func (p *Program) add(n node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

// beyondASCII tells whether an instruction takes a character outside ASCII.
func beyondASCII(in *syntax.Inst) bool {
	switch in.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	if len(in.Rune) != 1 {
		return len(in.Rune) > 0 && in.Rune[len(in.Rune)-1] >= utf8.RuneSelf
	}
	// One letter in all its cases, such as k and the sign of Kelvin.
	return in.Rune[0] >= utf8.RuneSelf || in.MatchRune('K') || in.MatchRune('S') || in.MatchRune('k') || in.MatchRune('s')
}
