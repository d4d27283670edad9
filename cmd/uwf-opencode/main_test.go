package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
)

func TestMain(m *testing.M) { cliagenttest.Main(m) }

// The recorded runs come from the real program, version 1.18.33.
func TestAdapter(t *testing.T) {
	t.Parallel()
	cliagenttest.Run(t, adapter(), cliagenttest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	cliagenttest.Streams(t, adapter())
}
