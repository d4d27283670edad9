package main

import (
	"encoding/json"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// input is how a prompt reaches claude: on stdin, and with these arguments.
//
// One in which claude could take anything for more than text goes in blocks.
func input(prompt string) (args []string, stdin string, err error) {
	parts, plain := cliagent.ClaudeBlocks(prompt)
	if plain {
		return nil, prompt, nil
	}
	var blocks []textBlock
	for _, part := range parts {
		blocks = append(blocks, textBlock{Type: "text", Text: part})
	}
	var line struct {
		Type    string `json:"type"`
		Message struct {
			Role    string      `json:"role"`
			Content []textBlock `json:"content"`
		} `json:"message"`
	}
	line.Type, line.Message.Role, line.Message.Content = "user", "user", blocks
	data, err := json.Marshal(line)
	return []string{"--input-format", "stream-json"}, string(data) + "\n", err
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
