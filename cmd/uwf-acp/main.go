// Command uwf-acp is an agent of uwf that has a program do the work which speaks
// the Agent Client Protocol: uwf-acp -- gemini --acp. The engine starts it;
// docs/agents has a page about it.
package main

import (
	"github.com/united-workforce/uwf/utilagent/acp"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(acp.Adapter())) }
