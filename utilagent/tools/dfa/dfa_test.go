package dfa_test

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/tools/dfa"
)

// flags read an expression as one that matches within a line.
const flags = syntax.Perl &^ syntax.OneLine

func compile(t testing.TB, expr string) *dfa.Program {
	t.Helper()
	tree, err := syntax.Parse(expr, flags)
	require.NoError(t, err)
	return dfa.Compile(tree)
}

// found are the lines that a scanner finds, as the caller goes through them.
func found(s *dfa.Scanner, text string) (lines []string) {
	b := []byte(text)
	for at := 0; at < len(b); {
		i := s.Find(b, at)
		if i < 0 {
			return lines
		}
		start := bytes.LastIndexByte(b[:i], '\n') + 1
		end := len(b)
		if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
			end = i + n
		}
		lines = append(lines, text[start:end])
		at = end + 1
	}
	return lines
}

func TestFindsLines(t *testing.T) {
	t.Parallel()
	const text = "one\nAlpha 2024-01-31\n\ncafé au lait\nx\xffy\nKelvin \u212a\nlast"
	for expr, want := range map[string][]string{
		"one":                  {"one"},
		"^l|t$":                {"café au lait", "last"},
		`\d{4}-\d{2}-\d{2}`:    {"Alpha 2024-01-31"},
		"^$":                   {""},
		"é":                    {"café au lait"},
		"[é-ü] au":             {"café au lait"},
		"x.y":                  {"x\xffy"},
		"(?i)ALPHA":            {"Alpha 2024-01-31"},
		"(?i)n k":              {"Kelvin \u212a"},
		"nowhere":              nil,
		"[^a-z]$":              {"Alpha 2024-01-31", "Kelvin \u212a"},
		`(?i)^(a|k).*[0-9]+\b`: {"Alpha 2024-01-31"},
		"last$":                {"last"},
		"":                     strings.Split(text, "\n"),
	} {
		require.Equal(t, want, found(compile(t, expr).NewScanner(), text), expr)
	}
}

// The end of the text begins no line.
func TestNothingBehindTheLastLineEnd(t *testing.T) {
	t.Parallel()
	require.Nil(t, found(compile(t, "^$").NewScanner(), "a\n"))
	require.Equal(t, []string{""}, found(compile(t, "^$").NewScanner(), "a\n\n"))
}

// An expression whose automaton grows for ever costs neither memory nor matches.
func TestGrowingAutomatonIsGivenUp(t *testing.T) {
	t.Parallel()
	const expr = "[ab]*a[ab]{40}c"
	s := compile(t, expr).NewScanner()
	text := strings.Repeat(strings.Repeat("abbabaab", 10)+"\n", 50) + strings.Repeat("a", 41) + "c\n"
	var random uint32 = 1
	b := []byte(text)
	for i := range 4000 {
		random = random*1664525 + 1013904223
		b[i] = 'a' + byte(random>>31)
	}
	lines := found(s, string(b))
	require.Contains(t, lines, strings.Repeat("a", 41)+"c")
	require.Greater(t, len(lines), 1, "lines are not told apart any more")
}

func TestStatesAreThrownAwayWhereTheyHaveBeenOfUse(t *testing.T) {
	t.Parallel()
	s := compile(t, "[ab]*a[ab]{12}c").NewScanner()
	const width = 1000
	b := []byte(strings.Repeat(strings.Repeat("x", width-1)+"\n", 1000))
	var random uint32 = 1
	for i := 0; i < len(b); i += width {
		for j := i; j < i+20; j++ {
			random = random*1664525 + 1013904223
			b[j] = 'a' + byte(random>>31)
		}
	}
	lines := found(s, string(b)+"abbbbbbbbbbbbc\n")
	require.Len(t, lines, 1, "it was given up")
	require.Equal(t, "abbbbbbbbbbbbc", lines[0])
}

// No line that matches is left out.
func FuzzSieve(f *testing.F) {
	for _, expr := range []string{
		"a", `\w+x`, "(?i)Alpha|k", "[^a]", "a(b|c)+d{2,3}", "^a|b$", ".", "x*", "^$", `\bfoo\b|\B`, "é|ü.", `\pL\d`, "$^", "(^a)*b", "[\u007f-\u0100]",
		"(a|ab)(c|bcd)(d*)", "\ufffd", "(?:$|b)", "^^$$", `(?i)ſ`, `[[:^alpha:]]{2,}`,
	} {
		f.Add(expr, "one\nAlpha k\u212a\n\nabbcd foo\xff\xc3\nüé 1\n")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		tree, err := syntax.Parse(expr, flags)
		if err != nil || takesLineEnd(tree) {
			return
		}
		re, err := regexp.Compile(tree.String())
		if err != nil {
			return
		}
		p := dfa.Compile(tree)
		if p == nil {
			return
		}
		lines := found(p.NewScanner(), text)
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text == "" || !re.MatchString(line) {
				continue
			}
			if len(lines) > 0 && lines[0] != line {
				lines = dropTo(lines, line)
			}
			if len(lines) == 0 {
				t.Fatalf("%q matches %q, which was not found", expr, line)
			}
			lines = lines[1:]
		}
	})
}

// dropTo drops the lines before line: they need not match.
func dropTo(lines []string, line string) []string {
	for len(lines) > 0 && lines[0] != line {
		lines = lines[1:]
	}
	return lines
}

// takesLineEnd tells whether an expression can match "\n".
func takesLineEnd(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpAnyChar:
		return true
	case syntax.OpLiteral:
		return strings.ContainsRune(string(re.Rune), '\n')
	case syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return true
			}
		}
	}
	for _, sub := range re.Sub {
		if takesLineEnd(sub) {
			return true
		}
	}
	return false
}
