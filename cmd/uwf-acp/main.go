// Command uwf-acp is a uwf agent for any program that speaks the Agent Client Protocol: uwf-acp -- gemini
// --acp. The engine starts it; see docs/agents.
package main

import (
	"github.com/united-workforce/uwf/utilagent/acp"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(acp.Adapter())) }
