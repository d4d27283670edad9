package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
)

func FuzzDecoder(f *testing.F) {
	cliagenttest.FuzzDecoder(f, adapter(), cliagent.Call{}, cliagent.Call{Resume: true, Session: "s"})
}
