// Command uwf-builtin is a uwf agent that works with its own tools on any OpenAI-compatible endpoint. The
// engine starts it; see package builtin.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/builtin"
)

func main() { agentkit.Run(builtin.Options()) }
