package mock

import (
	"fmt"
	"os"

	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// Run plays the mock agent in this process and exits: it is the whole of main.
func Run() {
	p, err := agentkit.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf-mock:", err)
		os.Exit(1)
	}
	os.Exit(Main(p))
}
