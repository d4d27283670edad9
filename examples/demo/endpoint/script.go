package main

import "fmt"

// reply is what the model says, and the tools that it calls.
type reply struct {
	text  string
	calls []toolCall
}

type toolCall struct {
	name string
	args map[string]any
}

// turn is one answer of the script.
type turn func(c conversation) reply

// script is what each role says on each of its visits. After the last turn of a
// visit, and after the last visit, the last one is said again.
func script(role string) [][]turn {
	switch role {
	case "planner":
		return [][]turn{plan()}
	case "developer":
		return [][]turn{firstFix(), secondFix()}
	case "reviewer":
		return [][]turn{reject(), approve()}
	}
	return nil
}

// next is the answer that a conversation has come to.
func next(c conversation) (reply, error) {
	visits := script(c.role)
	if visits == nil {
		return reply{}, fmt.Errorf("the script of the demo has no role %q", c.role)
	}
	turns := visits[min(c.visit, len(visits))-1]
	return turns[min(c.turn, len(turns)-1)](c), nil
}

// calling is a turn that calls tools.
func calling(text string, calls ...toolCall) turn {
	return func(conversation) reply { return reply{text: text, calls: calls} }
}

// saying is a turn that ends a visit.
func saying(format string, args ...func(conversation) string) turn {
	return func(c conversation) reply {
		values := make([]any, len(args))
		for i, arg := range args {
			values[i] = arg(c)
		}
		return reply{text: fmt.Sprintf(format, values...)}
	}
}

func readFile(path string) toolCall {
	return toolCall{"read_file", map[string]any{"path": path}}
}

func editFile(path, old, new string) toolCall {
	return toolCall{"edit_file", map[string]any{"path": path, "old_string": old, "new_string": new}}
}

func goTest(flags string) toolCall {
	return toolCall{"run_command", map[string]any{"command": "go test " + flags + "./..."}}
}
