// Command uwf-echo is a minimal complete agent: it repeats its prompt.
package main

import (
	"context"

	"github.com/united-workforce/uwf/utilagent/agentkit"
)

func main() { agentkit.Run(options()) }

func options() agentkit.Options { return agentkit.Options{Name: "echo", Run: echo} }

func echo(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
	return agentkit.Result{Output: "---\n$status: done\n---\n" + req.EdgePrompt, SessionID: req.Thread}, nil
}
