package cliagent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
)

// PromptArgument returns the prompt for a program that takes it only as an argument. A long prompt is written
// to a file in the run directory, and the argument refers to it. A prompt that begins with a dash is preceded
// by a line break, so that it is not taken for an option.
func (c Call) PromptArgument() (string, error) {
	if len(c.Prompt) <= maxArgument {
		if strings.HasPrefix(c.Prompt, "-") {
			return "\n" + c.Prompt, nil
		}
		return c.Prompt, nil
	}
	path := filepath.Join(c.RunDir, "prompt.md")
	if err := durable.Replace(durable.OS(), path, []byte(c.Prompt), 0o600); err != nil {
		return "", fmt.Errorf("store a prompt that is too long for a command line: %w", err)
	}
	return fmt.Sprintf("Your instructions are in the file %s. Read all of it first, to its end, and then do what it says.", path), nil
}
