package main

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// asServer is set if the test binary acts as the server. It also acts as the background worker of its
// engines, and with the argument "agent" as their agent.
const asServer = "UWF_WEB_TEST_SERVER"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		mock.Run()
		return
	}
	if _, ok := host.CallOf(os.Args[1:]); ok || os.Getenv(asServer) != "" {
		os.Exit(host.Main(program, serving))
	}
	os.Exit(prosetest.Run(m))
}
