package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// reply is the model's text and its tool calls.
type reply struct {
	text  string
	calls []toolCall
}

type toolCall struct {
	name string
	args map[string]any
}

// turn returns one answer of the script.
type turn func(c conversation) reply

// script returns the answers of a role for each of its visits. After the last turn of a visit, and after the
// last visit, the last one is repeated.
func script(role string) [][]turn {
	switch role {
	case "planner":
		return [][]turn{plan()}
	case "developer":
		return [][]turn{firstFix(), secondFix()}
	case "reviewer":
		return [][]turn{reject(), approve()}
	case "reader":
		return [][]turn{readDiff()}
	case "judge":
		return [][]turn{judge()}
	case "against":
		return [][]turn{argue("A copy costs time and memory at every call."), concede("True: who calls cannot know, and a bug is dearer than a copy.")}
	case "for":
		return [][]turn{argue("A function that only computes must leave its argument alone, whatever that costs.")}
	case "researcher":
		return [][]turn{research()}
	case "checker":
		return [][]turn{check()}
	case "author":
		return [][]turn{writeTests(), correctTest(), strengthen()}
	case "sceptic":
		return [][]turn{plantBug()}
	case "collector":
		return [][]turn{collectChanges()}
	case "writer":
		return [][]turn{writeNotes(""), writeNotes(": right for any list")}
	case "proofreader":
		return [][]turn{proofread("unclear"), proofread("clear")}
	}
	return nil
}

// next returns the next answer of a conversation.
func next(c conversation) (reply, error) {
	visits := script(c.role)
	if visits == nil {
		return reply{}, fmt.Errorf("the script of the demo has no role %q", c.role)
	}
	turns := visits[min(c.visit, len(visits))-1]
	return turns[min(c.turn, len(turns)-1)](c), nil
}

// calling returns a turn that calls tools.
func calling(text string, calls ...toolCall) turn {
	return func(conversation) reply { return reply{text: text, calls: calls} }
}

// saying returns a turn that ends a visit.
func saying(format string, args ...func(conversation) string) turn {
	return func(c conversation) reply {
		values := make([]any, len(args))
		for i, arg := range args {
			values[i] = arg(c)
		}
		return reply{text: fmt.Sprintf(format, values...)}
	}
}

// field is a field of a role's output.
type field struct {
	name  string
	value any
}

// ending returns a turn that ends a visit with a role's output: as structured data if the agent supports it,
// otherwise as text with frontmatter.
func ending(body string, fields ...field) turn {
	return func(c conversation) reply {
		if c.has("resolve") {
			args := map[string]any{}
			for _, f := range fields {
				args[f.name] = f.value
			}
			return reply{text: body, calls: []toolCall{{"resolve", args}}}
		}
		var b strings.Builder
		b.WriteString("---\n")
		for _, f := range fields {
			value, err := json.Marshal(f.value) // JSON is valid YAML
			if err != nil {
				panic(err) // the script contains only texts and lists of texts
			}
			if f.name == "$status" {
				value = fmt.Append(nil, f.value) // one word
			}
			fmt.Fprintf(&b, "%s: %s\n", f.name, value)
		}
		return reply{text: b.String() + "---\n" + body + "\n"}
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
