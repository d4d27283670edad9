// Command uwf-codex is an agent of uwf that has OpenAI's Codex CLI do the work.
// The engine starts it; docs/agents.md says what it may do and how to set it.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }
