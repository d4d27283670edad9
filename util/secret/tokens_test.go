package secret

import (
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTokensAreLongRuns holds the search for a run of characters to the expression that follows it.
func TestTokensAreLongRuns(t *testing.T) {
	t.Parallel()
	shape, err := syntax.Parse(tokenShape().String(), syntax.Perl)
	require.NoError(t, err)
	require.Equal(t, shortestToken, shortest(t, shape))
	const start = 3
	var short []string
	for _, s := range tokenStarts() {
		short = append(short, s[:start])
		if len(s) > start {
			require.Contains(t, tokenShape().String(), s)
			require.Equal(t, 1, strings.Count(tokenShape().String(), s[:start]), "nothing else starts so")
		}
	}
	require.ElementsMatch(t, short, starts(t, shape, start))
	require.Empty(t, tokens("sk-0123456 sk-0123456"))
	require.Equal(t, []string{"xapp-0123456789"}, tokens("x=xapp-0123456789;"))
}

// starts returns the first n characters of all texts that an expression matches.
func starts(t *testing.T, e *syntax.Regexp, n int) (all []string) {
	switch e.Op {
	case syntax.OpWordBoundary:
		return []string{""}
	case syntax.OpLiteral:
		return []string{string(e.Rune[:min(n, len(e.Rune))])}
	case syntax.OpCharClass:
		for i := 0; i < len(e.Rune); i += 2 {
			for c := e.Rune[i]; c <= e.Rune[i+1]; c++ {
				all = append(all, string(c))
			}
		}
		return all
	case syntax.OpAlternate:
		for _, sub := range e.Sub {
			all = append(all, starts(t, sub, n)...)
		}
	case syntax.OpConcat:
		all = []string{""}
		for _, sub := range e.Sub {
			var longer []string
			for _, s := range all {
				if len(s) == n {
					longer = append(longer, s)
					continue
				}
				for _, more := range starts(t, sub, n-len(s)) {
					longer = append(longer, s+more)
				}
			}
			all = longer
		}
	default:
		require.Fail(t, "unknown part", e.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// shortest returns the length of the shortest match, whose characters must be those of a run.
func shortest(t *testing.T, e *syntax.Regexp) (n int) {
	known := func(low, high rune) {
		for c := low; c <= high; c++ {
			require.Contains(t, "0123456789-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", string(c))
		}
	}
	switch e.Op {
	case syntax.OpLiteral:
		for _, c := range e.Rune {
			known(c, c)
		}
		return len(e.Rune)
	case syntax.OpCharClass:
		for i := 0; i < len(e.Rune); i += 2 {
			known(e.Rune[i], e.Rune[i+1])
		}
		return 1
	case syntax.OpWordBoundary:
		return 0
	case syntax.OpQuest, syntax.OpStar:
		shortest(t, e.Sub[0])
		return 0
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(t, e.Sub[0])
	case syntax.OpRepeat:
		return e.Min * shortest(t, e.Sub[0])
	case syntax.OpConcat:
		for _, sub := range e.Sub {
			n += shortest(t, sub)
		}
		return n
	case syntax.OpAlternate:
		n = shortest(t, e.Sub[0])
		for _, sub := range e.Sub[1:] {
			n = min(n, shortest(t, sub))
		}
		return n
	}
	require.Fail(t, "unknown part", e.String())
	return 0
}
