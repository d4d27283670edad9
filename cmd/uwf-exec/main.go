// Command uwf-exec makes an agent of any program that takes a prompt and prints an
// answer:
//
//	uwf-exec -- <command…>
//
// The engine starts it; see package cliagent.
package main

import (
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter(&options{}))) }
