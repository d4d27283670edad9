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
	re *regexp.Regexp
	// words: every match holds at least one of them; nil: nothing is known.
	words []string
	fold  bool // in whatever case; words are in lower case
	note  string
}

// parsePattern reads a regular expression of RE2. What is none is searched for
// as it stands, and the note says so, unless it is plain what was meant.
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
	var bad *syntax.Error
	if errors.As(err, &bad) {
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
	p.words, p.fold = words(tree.Simplify())
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

// maxWords bounds the alternatives that are told apart.
const maxWords = 16

// words returns texts of which every match holds at least one; nil if there are
// none. They are in lower case if fold: then case does not count.
func words(re *syntax.Regexp) (list []string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return wordsOfLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return words(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return words(re.Sub[0])
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			some, folded := words(sub)
			if len(some) == 0 || len(list)+len(some) > maxWords {
				return nil, false
			}
			list, fold = append(list, some...), fold || folded
		}
		return lowered(list, fold), fold
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if some, folded := words(sub); shortest(some) > shortest(list) {
				list, fold = some, folded
			}
		}
		return list, fold
	}
	return nil, false
}

// wordsOfLiteral leaves out what has other cases than ASCII's: programs
// disagree about them.
func wordsOfLiteral(re *syntax.Regexp) ([]string, bool) {
	word := string(re.Rune)
	if strings.ContainsAny(word, "\n\x00") {
		return nil, false
	}
	if re.Flags&syntax.FoldCase == 0 {
		return []string{word}, false
	}
	var best string
	for part := range strings.FieldsFuncSeq(strings.ToLower(word), func(r rune) bool { return r >= 0x80 || r == 'k' || r == 's' }) {
		if len(part) > len(best) {
			best = part
		}
	}
	if best == "" {
		return nil, false
	}
	return []string{best}, true
}

func lowered(list []string, fold bool) []string {
	if fold {
		for i, w := range list {
			list[i] = strings.ToLower(w)
		}
	}
	return list
}

func shortest(list []string) int {
	n := 0
	for i, w := range list {
		if i == 0 || len(w) < n {
			n = len(w)
		}
	}
	return n
}
