package moderator

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
)

// What a role that is a command answers, unless it prints its data itself: passed if
// its exit status is 0, else failed, with the end of what it printed.
const (
	CommandPassed = "passed"
	CommandFailed = "failed"
	CommandOutput = 64 << 10 // bytes of the end
)

// CommandSchema is the schema of a role that is a command and does not print its data.
func CommandSchema() map[string]any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{protocol.StatusKey, "exitCode", "output",
			"truncated"},
		"properties": map[string]any{
			protocol.StatusKey: map[string]any{"type": "string", "enum": []any{CommandPassed, CommandFailed}},
			"exitCode":         map[string]any{"type": "integer"},
			"output":           map[string]any{"type": "string"},
			"truncated":        map[string]any{"type": "boolean"},
		},
	}
}

// errNul: no system passes such a word to a program.
var errNul = errors.New("renders to a text with a NUL in it")

// commandOf renders the words of a role that is a command, nil if it is none. Each is
// one argument whatever it renders to: there is no shell. A word may be empty, but not
// the program's.
func commandOf(s State, at place, role string, output any) ([]string, error) {
	words := s.Workflow.Roles[role].Run
	if len(words) == 0 {
		return nil, nil
	}
	argv := make([]string, len(words))
	for i, word := range words {
		var err error
		argv[i], err = s.word(word, view(plain(s.Start), at.status, asWord(s, at.node, output)))
		if err == nil && strings.ContainsRune(argv[i], 0) {
			err = errNul
		}
		if err != nil {
			return nil, &TemplateError{Node: at.node, Edge: at.key, Field: fmt.Sprintf("roles[%s]: run[%d]", role, i),
				Template: word, Err: err}
		}
	}
	if strings.TrimSpace(argv[0]) == "" {
		return nil, &TemplateError{Node: at.node, Edge: at.key, Field: fmt.Sprintf("roles[%s]: run[0]", role),
			Template: words[0], Err: ErrEmpty}
	}
	return argv, nil
}

// asWord is an answer for a word of a command or a location. What a command prints ends with a line
// feed that belongs to neither, wherever it stands.
func asWord(s State, by string, output any) any {
	answer, ok := output.(map[string]any)
	text, printed := answer["output"].(string)
	if role := s.Workflow.Roles[by]; !ok || !printed || role.Player() != protocol.PlayedByCommand || role.Parse != "" {
		return output
	}
	answer = maps.Clone(answer)
	answer["output"] = withoutLineFeeds(text)
	return answer
}

// KnownCommand is a command with the words rendered that the task and the inputs of a run
// fill in. The others, which wait for answers, stay as they are written.
func KnownCommand(words []string, start protocol.Start) []string {
	known := map[string]any{protocol.PromptVariable: start.Prompt, protocol.InputsVariable: start.Inputs}
	argv := make([]string, len(words))
	for i, word := range words {
		argv[i] = word
		if t, err := mustache.Parse(word); err == nil && wantedBy(pathsOf(t, nil)).nothing() {
			if text, err := t.Render(known); err == nil {
				argv[i] = text
			}
		}
	}
	return argv
}
