// Command uwf-claude-code makes an agent of Claude Code, the program claude. The
// engine starts it; see package cliagent.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }
