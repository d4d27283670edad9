package main

import (
	"testing"

	"github.com/united-workforce/uwf/util/starttest"
)

// A step starts two programs, uwf and an agent such as this one, so their start must be fast.
func TestNothingIsCompiledBeforeMain(t *testing.T) {
	t.Parallel()
	starttest.Cheap(t, "cmd/uwf-claude-code", "utilagent/cliagent")
}
