package tools

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

// The test binary acts as the program that confines a command.
func TestMain(m *testing.M) {
	if status, ok := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); ok {
		os.Exit(status)
	}
	os.Exit(prosetest.Run(m))
}
