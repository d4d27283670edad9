package main

import (
	"testing"

	"github.com/united-workforce/uwf/util/starttest"
)

// A step starts two programs, this one and an agent, so their start must be fast.
func TestNothingIsCompiledBeforeMain(t *testing.T) {
	t.Parallel()
	starttest.Cheap(t, "cmd/uwf", "util/secret", "util/programs", "internal/thirdparty/jsonschema")
}
