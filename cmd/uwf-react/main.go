// Command uwf-react is a uwf agent that works with its own tools on an OpenAI-compatible endpoint and ends by
// calling the tool "resolve" with the role's output. The engine starts it; see package builtin.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/builtin"
)

func main() { agentkit.Run(builtin.ReactOptions()) }
