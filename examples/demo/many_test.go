//go:build instruments

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyAtOnce lists the examples with several concurrent threads, and their scenarios' result texts. Scenarios
// play all roles, as docs/examples.md states.
var manyAtOnce = map[string]string{
	"panel":         "All three approve.",
	"fix-findings":  "The tests pass.",
	"best-of-three": "It is built.",
	"translate":     "Done: German French ",
	"investigate":   "the database is slow; the network drops packets",
}

func testManyAtOnce(t *testing.T, built *stage) {
	require.NoError(t, built.goBuild(t.Context(), built.bin, "./cmd/uwf-mock"))
	s := newStage(t, built.bin)
	s.environ = append(s.environ, "PATH="+built.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for name, message := range manyAtOnce {
		s.t = t
		file := "examples/" + name + ".yaml"
		if name == "translate" { // with the workflow that it runs
			file = "examples/translate/translate.yaml"
		} else {
			checkPicture(t, s, name)
		}
		got := s.play(0, "run", file, "-p", "x", "--scenario", "examples/scenarios/"+name+".yaml", "--cwd", s.project)
		require.Equal(t, "completed", got.Status)
		require.Equal(t, message, got.Said)
	}
}
