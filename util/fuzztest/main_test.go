package fuzztest

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestMain(m *testing.M) { os.Exit(prosetest.Run(m)) }
