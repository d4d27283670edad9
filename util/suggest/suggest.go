// Package suggest finds the word that a user probably meant.
package suggest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sorting"
)

// maxDistance bounds the edit distance of a misspelling, for a word of any length. It also keeps the search
// cheap for hostile input.
const maxDistance = 4

// minPrefix is the minimum length of a prefix that matches a longer word.
const minPrefix = 3

// Nearest returns up to limit candidates close to word, sorted by distance and name. A candidate is close if
// it differs by one edit (a missing, additional or different character, or two swapped), or one per three
// characters of word, or if it starts with word. Case doesn't matter; word itself is never returned.
func Nearest(word string, candidates []string, limit int) []string {
	type match struct {
		candidate string
		distance  int
	}
	folded := []rune(strings.ToLower(word))
	cutoff := min(max(len(folded)/3, 1), maxDistance)
	if len(folded) < 2 {
		cutoff = 0 // any other letter would be close
	}
	var matches []match
	for _, c := range candidates {
		if c == word || slices.ContainsFunc(matches, func(m match) bool { return m.candidate == c }) {
			continue
		}
		target := []rune(strings.ToLower(c))
		d := cutoff + 1
		if abs(len(target)-len(folded)) <= cutoff {
			d = distance(folded, target)
		}
		if d > cutoff && len(folded) >= minPrefix && strings.HasPrefix(string(target), string(folded)) {
			d = cutoff
		}
		if d <= cutoff {
			matches = append(matches, match{c, d})
		}
	}
	sorting.Func(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.candidate, b.candidate))
	})
	var nearest []string
	for _, m := range matches[:min(max(limit, 0), len(matches))] {
		nearest = append(nearest, m.candidate)
	}
	return nearest
}

// distance returns the edit distance between two words (optimal string alignment).
func distance(a, b []rune) int {
	before := make([]int, len(b)+1) // the row two above
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// File returns the name, in the directory of a missing file, that was probably meant; "" if none is close.
// dir is the base of a relative path; the result starts as path does.
func File(dir, path string) string {
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	entries, err := os.ReadDir(filepath.Dir(at))
	if err != nil {
		return "" // the caller reports the error
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	near := Nearest(filepath.Base(at), names, 1)
	if len(near) == 0 {
		return ""
	}
	before, _ := filepath.Split(path)
	return before + near[0]
}

// Ambiguous returns the error for a prefix of a name or hash that matches several objects of a kind.
func Ambiguous(kind, word string, matches []string) error {
	shown := matches
	if len(shown) > 5 {
		shown = append(shown[:5:5], "…")
	}
	return &protocol.Error{
		Code:    protocol.CodeNotFound,
		Message: fmt.Sprintf("%s %q is ambiguous: %d match", kind, word, len(matches)),
		Hints:   []string{"did you mean " + strings.Join(shown, ", or ") + "?"},
	}
}
