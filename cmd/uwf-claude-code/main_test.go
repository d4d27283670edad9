package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
)

func TestMain(m *testing.M) { cliagenttest.Main(m) }

// The recorded runs come from the real program, versions 1.0.120 to 2.1.332.
func TestAdapter(t *testing.T) {
	t.Parallel()
	cliagenttest.Run(t, adapter(), cliagenttest.Load(t, "testdata/fixtures"))
}
