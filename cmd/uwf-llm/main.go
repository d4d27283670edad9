// Command uwf-llm is a uwf agent that sends a single request to an OpenAI-compatible endpoint. It has no
// tools. The engine starts it; see package builtin. It also sends uwf's own requests to models.
package main

import "github.com/united-workforce/uwf/utilagent/builtin"

func main() { builtin.RunLLM() }
