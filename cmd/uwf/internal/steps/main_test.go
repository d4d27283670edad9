package steps_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
	"github.com/united-workforce/uwf/utilagent/builtin"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// TestMain lets the test binary act as the program that sends requests to models.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == modelcall.Program {
		builtin.RunLLM()
		return
	}
	tmpfstest.Main(prosetest.Of(m))
}
