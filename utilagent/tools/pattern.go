package tools

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a regular expression that matches within a line.
type pattern struct {
	re   *regexp.Regexp
	word string // every match holds it; "": none is known
	fold bool   // in whatever case; the word is in lower case
	note string
}

// parsePattern reads a regular expression of RE2. An invalid one is searched for literally,
// and the note says so, unless it is clear what was meant.
func parsePattern(text string, fold bool) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("the pattern is empty. Give a regular expression")
	}
	if len(text) > 10_000 {
		return pattern{}, errors.New("the pattern is longer than 10000 characters. Search for a part of it")
	}
	flags := syntax.Perl &^ syntax.OneLine
	if fold {
		flags |= syntax.FoldCase
	}
	p := pattern{}
	tree, err := syntax.Parse(text, flags)
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		if bad.Code == syntax.ErrInvalidPerlOp || bad.Code == syntax.ErrInvalidEscape || bad.Code == syntax.ErrInvalidRepeatSize || bad.Code == syntax.ErrLarge {
			return pattern{}, fmt.Errorf("the pattern is not valid: %s: %s. The syntax is RE2: no lookaround (?=…) (?!…), no back references \\1, repeats up to 1000", bad.Code, bad.Expr)
		}
		p.note = fmt.Sprintf("[%q is not a valid regular expression (%s): it was searched for as plain text]\n", text, bad.Code)
		tree, err = syntax.Parse(regexp.QuoteMeta(text), flags)
	}
	if err != nil {
		return pattern{}, fmt.Errorf("the pattern is not valid: %w. Use the syntax of RE2", err)
	}
	withinLine(tree)
	if p.re, err = regexp.Compile(tree.String()); err != nil {
		return pattern{}, fmt.Errorf("the pattern is not valid: %w. Use the syntax of RE2", err)
	}
	p.word, p.fold = wordIn(tree.Simplify())
	return p, nil
}

// withinLine keeps a tree from matching the end of a line, so that a whole file
// can be searched at once and yields the same as its lines one by one.
func withinLine(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op, re.Flags = syntax.OpEndLine, re.Flags&^syntax.WasDollar
	case syntax.OpCharClass:
		re.Rune = withoutNL(re.Rune)
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for _, sub := range re.Sub {
		withinLine(sub)
	}
}

// withoutNL takes the end of a line out of the ranges of a class.
func withoutNL(ranges []rune) []rune {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo > '\n' || hi < '\n' {
			out = append(out, lo, hi)
			continue
		}
		if lo < '\n' {
			out = append(out, lo, '\n'-1)
		}
		if hi > '\n' {
			out = append(out, '\n'+1, hi)
		}
	}
	return out
}

// wordIn returns the longest text that every match contains; "" if none is known. With fold it
// is in lower case, and case does not matter.
func wordIn(re *syntax.Regexp) (word string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return wordOfLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return wordIn(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return wordIn(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if one, folded := wordIn(sub); len(one) > len(word) {
				word, fold = one, folded
			}
		}
	}
	return word, fold
}

// wordOfLiteral leaves out what has other cases than ASCII's.
func wordOfLiteral(re *syntax.Regexp) (word string, fold bool) {
	word = string(re.Rune)
	if strings.ContainsAny(word, "\n\x00") {
		return "", false
	}
	if re.Flags&syntax.FoldCase == 0 {
		return word, false
	}
	var best string
	for part := range strings.FieldsFuncSeq(strings.ToLower(word), func(r rune) bool { return r >= 0x80 || r == 'k' || r == 's' }) {
		if len(part) > len(best) {
			best = part
		}
	}
	return best, best != ""
}
