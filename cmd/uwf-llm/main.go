// Command uwf-llm is a uwf agent that sends a single request to an OpenAI-compatible endpoint. It has no
// tools. The engine starts it; see package builtin.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/builtin"
)

func main() { agentkit.Run(builtin.LLMOptions()) }
