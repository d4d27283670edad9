package main

import (
	"context"
	"testing"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
)

func TestMain(m *testing.M) { cliagenttest.Main(m) }

// The runs were written by hand from Hermes's sources: the program itself could not
// be had.
func TestAdapter(t *testing.T) {
	t.Parallel()
	a, home := adapter(), t.TempDir()
	a.Transcript = func(ctx context.Context, c cliagent.Call, o cliagent.Outcome) (cliagent.Transcript, error) {
		c.Env = func(string) string { return home } // not that of whoever runs the test
		return transcript(ctx, c, o)
	}
	cliagenttest.Run(t, a, cliagenttest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	cliagenttest.Streams(t, adapter())
}
