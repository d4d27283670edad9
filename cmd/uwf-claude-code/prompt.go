package main

import (
	"encoding/json"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// input is how a prompt reaches claude: on stdin, and with these arguments.
//
// One in which claude could take anything for more than text goes in blocks, and so does
// that of a claude that hears what is said while it works.
func input(prompt string, hears bool) (args []string, stdin string, err error) {
	blocks, plain := cliagent.ClaudeBlocks(prompt)
	if plain && !hears {
		return nil, prompt, nil
	}
	line, err := userLine("", blocks)
	args = []string{"--input-format", "stream-json"}
	if hears {
		args = append(args, "--replay-user-messages")
	}
	return args, string(line), err
}

// Tell implements [cliagent.Hearer].
func (*decoder) Tell(id, text string) ([]byte, error) {
	blocks, _ := cliagent.ClaudeBlocks(text)
	return userLine(id, blocks)
}

// userLine is a message for claude.
func userLine(id string, texts []string) ([]byte, error) {
	var line struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid,omitempty"`
		Message struct {
			Role    string      `json:"role"`
			Content []textBlock `json:"content"`
		} `json:"message"`
	}
	line.Type, line.UUID, line.Message.Role = "user", id, "user"
	for _, text := range texts {
		line.Message.Content = append(line.Message.Content, textBlock{Type: "text", Text: text})
	}
	data, err := json.Marshal(line)
	return append(data, '\n'), err
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
