package moderator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
)

// The answer of a command role that doesn't print its own data: passed if the exit status is 0, otherwise
// failed, with the end of the command's output.
const (
	CommandPassed = "passed"
	CommandFailed = "failed"
	CommandOutput = 64 << 10 // bytes kept from the end of the output
)

// CommandSchema returns the schema of a command role that doesn't print its own data.
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

// errNul reports an argument that no operating system can pass to a program.
var errNul = errors.New("renders to a text with a NUL character")

// commandOf renders the arguments and the environment of a command role; both are nil for other roles. Each
// word becomes exactly one argument, because no shell splits it. An argument may be empty, but the program
// name may not. A script isn't rendered.
func commandOf(s State, at place, role string, output any) (argv []string, env map[string]string, err error) {
	r := s.Workflow.Roles[role]
	stack := view(plain(s.Start), at.status, asWord(s, at.node, output))
	render := func(field, template string) string {
		text := ""
		if err == nil {
			if text, err = s.word(template, stack); err == nil && strings.ContainsRune(text, 0) {
				err = errNul
			}
			if err != nil {
				err = templateError(at, fmt.Sprintf("roles[%s]: %s", role, field), template, err)
			}
		}
		return text
	}
	argv = slices.Clone(r.Command())
	for i, word := range r.Run {
		argv[i] = render(fmt.Sprintf("run[%d]", i), word)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		if env == nil {
			env = map[string]string{}
		}
		env[name] = render(fmt.Sprintf("env[%s]", name), r.Env[name])
	}
	if err == nil && len(argv) > 0 && strings.TrimSpace(argv[0]) == "" {
		err = templateError(at, fmt.Sprintf("roles[%s]: run[0]", role), r.Command()[0], ErrEmpty)
	}
	return argv, env, err
}

// asWord returns an answer for use in a command argument or a location. It strips the trailing newlines of
// command output.
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

// CommandLine returns a command preceded by its variables, as a person would type it.
func CommandLine(argv []string, env map[string]string) []string {
	if len(env) == 0 {
		return argv
	}
	words := []string{"env"}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		words = append(words, name+"="+env[name])
	}
	return append(words, argv...)
}

// KnownCommand returns the command of a role, rendered with the task and the inputs of a run. Words that need
// answers stay unrendered.
func KnownCommand(r protocol.Role, start protocol.Start) (argv []string, env map[string]string) {
	known := map[string]any{protocol.PromptVariable: start.Prompt, protocol.InputsVariable: start.Inputs}
	render := func(word string) string {
		if t, err := mustache.Parse(word); err == nil && wantedBy(pathsOf(t, nil)).nothing() {
			if text, err := t.Render(known); err == nil {
				return text
			}
		}
		return word
	}
	argv, env = slices.Clone(r.Command()), maps.Clone(r.Env)
	for i, word := range r.Run {
		argv[i] = render(word)
	}
	for name, value := range env {
		env[name] = render(value)
	}
	return argv, env
}
