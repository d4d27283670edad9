package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/external/externaltest"
)

func TestMain(m *testing.M) { externaltest.Main(m) }

// The recorded runs are of the real program, versions 0.34 to 0.169.
func TestAdapter(t *testing.T) {
	t.Parallel()
	externaltest.Run(t, adapter(), externaltest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	externaltest.Streams(t, adapter())
}
