package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/external/externaltest"
)

func TestMain(m *testing.M) { externaltest.Main(m) }

// The runs were written by hand from the documentation: the program itself could
// not be had.
func TestAdapter(t *testing.T) {
	t.Parallel()
	externaltest.Run(t, adapter(), externaltest.Load(t, "testdata/fixtures"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	externaltest.Streams(t, adapter())
}
