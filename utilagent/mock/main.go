package mock

import (
	"fmt"
	"os"

	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// Run runs the mock agent in this process and exits. It is all that main needs to call.
func Run() {
	p, err := agentkit.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf-mock:", err)
		os.Exit(1)
	}
	os.Exit(Main(p))
}
