package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
)

func TestMain(m *testing.M) { cliagenttest.Main(m) }

// The runs were written by hand from the documentation, because the program was not available.
func TestAdapter(t *testing.T) {
	t.Parallel()
	cliagenttest.Run(t, adapter(), cliagenttest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	cliagenttest.Streams(t, adapter())
}
