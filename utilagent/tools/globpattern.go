package tools

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a pattern for names: what {a,b}{c,d} stands for is tried one by one.
const (
	maxAlternatives = 200
	maxGlobBytes    = 1000
)

// parseGlob returns what tells whether a name below base matches. A pattern
// without a slash is about the last part of the name, as in .gitignore.
func (w *Workspace) parseGlob(glob, base string) (func(name string) bool, error) {
	g := strings.TrimPrefix(strings.TrimSpace(glob), "./")
	if path.IsAbs(g) {
		for _, dir := range []string{w.dir, w.real} {
			if rest, ok := strings.CutPrefix(g, dir+"/"); ok {
				g, base = rest, "."
			}
		}
	}
	if path.IsAbs(g) || g == ".." || strings.HasPrefix(g, "../") || strings.Contains(g, "/../") {
		return nil, w.outside(glob)
	}
	if g == "" || !doublestar.ValidatePattern(g) {
		return nil, fmt.Errorf("%q is not a valid pattern. Use * and ? within a name, ** for any directories, {a,b} and [a-z], such as %q", glob, "src/**/*.{ts,tsx}")
	}
	if len(g) > maxGlobBytes || alternatives(g) > maxAlternatives {
		return nil, fmt.Errorf("the pattern has more than %d alternatives in {}, or %d bytes. Use several simpler ones", maxAlternatives, maxGlobBytes)
	}
	if !strings.Contains(g, "/") {
		g = "**/" + g
	}
	prefix := ""
	if base != "." {
		prefix = base + "/"
	}
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		matches, err := doublestar.Match(g, rest)
		return ok && matches && err == nil
	}, nil
}

// alternatives is how many patterns without braces a pattern stands for, or more.
func alternatives(glob string) int {
	n := 1
	var open []int // choices of the braces that are open
	for i := 0; i < len(glob) && n <= maxAlternatives; i++ {
		switch c := glob[i]; {
		case c == '\\':
			i++
		case c == '{':
			open = append(open, 1)
		case c == ',' && len(open) > 0:
			open[len(open)-1]++
		case c == '}' && len(open) > 0:
			n *= open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	return n
}
