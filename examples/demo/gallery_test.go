//go:build instruments

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "draw the pictures of the examples, and write their costs into docs/examples.md")

// cost is the usage of a scripted run of an example.
type cost struct {
	Steps int
	Usage struct{ InputTokens, CacheReadTokens, OutputTokens int }
}

// cost returns a thread's usage from `uwf thread show`.
func (s *stage) cost(thread string) cost {
	s.t.Helper()
	var shown struct{ Totals cost }
	require.NoError(s.t, s.ask(s.t.Context(), &shown, "thread", "show", thread))
	require.Positive(s.t, shown.Totals.Usage.OutputTokens)
	return shown.Totals
}

// costLine matches an example's line in the table of docs/examples.md.
func costLine(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(\| \[` + name + `\]\([^|]*\|[^|]*\|) (\d+) \| ([\d.]+)k \| ([\d.]+)k \|$`)
}

// checkCost compares docs/examples.md with the measured cost. Tokens can differ by a third, because they
// depend on each word of a prompt or a tool.
func checkCost(t *testing.T, name string, c cost) {
	t.Helper()
	page, err := os.ReadFile(gallery)
	require.NoError(t, err)
	in, out := float64(c.Usage.InputTokens+c.Usage.CacheReadTokens)/1000, float64(c.Usage.OutputTokens)/1000
	line := costLine(name)
	if *update {
		page = line.ReplaceAll(page, fmt.Appendf(nil, "${1} %d | %.0fk | %.1fk |", c.Steps, in, out))
		require.NoError(t, os.WriteFile(gallery, page, 0o644))
	}
	m := line.FindSubmatch(page)
	require.NotNil(t, m, "docs/examples.md has no line for %s", name)
	const again = "go test -tags instruments ./examples/demo -run TestExamples -update"
	require.Equal(t, fmt.Sprint(c.Steps), string(m[2]), again)
	require.InEpsilon(t, in, number(t, m[3]), 0.34, again)
	require.InEpsilon(t, out, number(t, m[4]), 0.34, again)
}

func number(t *testing.T, b []byte) (f float64) {
	t.Helper()
	_, err := fmt.Sscan(string(b), &f)
	require.NoError(t, err)
	return f
}

// checkPicture compares an example's picture with uwf's output.
func checkPicture(t *testing.T, s *stage, name string) {
	t.Helper()
	drawn, err := s.uwf(t.Context(), "workflow", "graph", "examples/"+name+".yaml", "--format", "svg")
	require.NoError(t, err)
	path := filepath.Join("../../docs/images", "example-"+name+".svg")
	if *update {
		require.NoError(t, os.WriteFile(path, drawn, 0o644))
	}
	picture, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(drawn), string(bytes.ReplaceAll(picture, []byte("\r\n"), []byte("\n"))),
		"go test -tags instruments ./examples/demo -run TestExamples -update")
}
