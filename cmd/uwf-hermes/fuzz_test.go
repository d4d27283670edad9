package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/external"
	"github.com/united-workforce/uwf/utilagent/external/externaltest"
)

func FuzzDecoder(f *testing.F) {
	externaltest.FuzzDecoder(f, adapter(), external.Call{}, external.Call{Help: "--format stream-json"}, external.Call{Resume: true, Session: "s"})
}
