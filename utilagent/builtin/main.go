package builtin

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// RunLLM is the main function of uwf-llm. The program also sends the requests of package modelcall.
func RunLLM() {
	if !modelcall.Called(os.Args[1:]) {
		agentkit.Run(LLMOptions())
	}
	ctx, stop := proc.WithSignals(context.Background())
	defer stop()
	if err := llm.Serve(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
