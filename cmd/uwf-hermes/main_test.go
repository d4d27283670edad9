package main

import (
	"context"
	"testing"

	"github.com/united-workforce/uwf/utilagent/external"
	"github.com/united-workforce/uwf/utilagent/external/externaltest"
)

func TestMain(m *testing.M) { externaltest.Main(m) }

// The runs were written by hand from Hermes's sources: the program itself could not
// be had.
func TestAdapter(t *testing.T) {
	t.Parallel()
	a, home := adapter(), t.TempDir()
	a.Transcript = func(ctx context.Context, c external.Call, o external.Outcome) (external.Transcript, error) {
		c.Env = func(string) string { return home } // not that of who runs the test
		return transcript(ctx, c, o)
	}
	externaltest.Run(t, a, externaltest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	externaltest.Streams(t, adapter())
}
