package main

import (
	"testing"

	"github.com/united-workforce/uwf/utilagent/external/externaltest"
)

func FuzzDecoder(f *testing.F) { externaltest.FuzzDecoder(f, adapter()) }
