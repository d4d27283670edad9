// Package prompt writes what an agent is told: the format of its answer, its
// role, the task, what happened so far and what to do now. All agents share
// these parts, those in other languages through `uwf step prompt`.
//
// It is pure, and its text depends on nothing but its arguments, so that equal
// beginnings stay equal and a provider's prompt cache can hit. Texts that come
// from models or files are cleaned: no control characters, no invalid UTF-8. What
// other agents wrote cannot be taken for a part of the prompt: see fence.go.
package prompt

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
)

// Parts are what a prompt is made of.
type Parts struct {
	Role       protocol.Role
	RoleName   string
	Schema     any    // of the role's output, as a JSON value
	Structured bool   // the agent returns data itself: no format instruction
	Task       string // the thread's prompt
	History    []Step // newest first; steps since the role's last turn when Continuing
	Omitted    int    // older steps that were left out of History
	EdgePrompt string
	Cwd        string
	Thread     string // its id
	Number     int    // of the step to be made, from 1
	Visit      int    // how often the role has had its turn before
	Continuing bool   // the agent still has the session of its last turn
	Rejected   string // why the last answer in that session was not accepted, "" if it was
}

// Full is the whole prompt as one message: System and User. For a session that
// goes on, the role and the task are in it already, and the format is repeated,
// because long sessions forget it first.
func Full(p Parts) string {
	if p.Continuing {
		return join(format(p), User(p))
	}
	return join(System(p), User(p))
}

// System is the part that stays the same over a role's turns: format and role.
func System(p Parts) string { return join(format(p), RolePrompt(p.Role)) }

// User is the rest: the task, what happened, what to do now, and where.
func User(p Parts) string {
	if p.Continuing {
		return join(Continuation(p), place(p))
	}
	if len(p.Task) > longTask && strings.TrimSpace(p.EdgePrompt) == strings.TrimSpace(p.Task) {
		p.EdgePrompt = "Do what the task above says."
	}
	return join(section("Task", p.Task), Continuation(p), place(p))
}

// longTask is the length in bytes from which a task is not told twice, as it would
// be by a workflow that hands it to its first role.
const longTask = 500

// RolePrompt is the role's sections. Empty ones are left out; Prepare, the
// command reference, is always there.
func RolePrompt(r protocol.Role) string {
	return join(
		section("Goal", r.Goal),
		section("Capabilities", bullets(r.Capabilities)),
		section("Prepare", join(protocol.Reference(), skills(r.Capabilities))),
		section("Procedure", r.Procedure),
		section("Output", r.Output),
	)
}

func skills(capabilities []string) string {
	if len(capabilities) == 0 {
		return ""
	}
	return "You have the following capabilities: " + strings.Join(capabilities, ", ") +
		". Load relevant skills matching these keywords before starting work."
}

func bullets(items []string) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString("- " + oneLine(item) + "\n")
	}
	return b.String()
}

// format is what stands first: the format instruction, or for an agent that
// returns data only the sentence about scope.
func format(p Parts) string {
	if p.Structured {
		return scopeSentence
	}
	return FormatInstruction(p.Schema)
}

// place says where the agent is: models that are not told spend turns on
// finding out (the directory, and how far the thread has come).
func place(p Parts) string {
	var lines []string
	if p.Cwd != "" {
		lines = append(lines, fmt.Sprintf("You work in %s; relative paths start there.", fence.Word(fence.Directory, p.Cwd, "`"+p.Cwd+"`")))
	}
	if p.Number > 0 {
		lines = append(lines, fmt.Sprintf("This is step %d of thread %s. Your role, %s, has had %s before.",
			p.Number, p.Thread, p.RoleName, count(p.Visit, "turn")))
	}
	return section("Working Directory", strings.Join(lines, "\n\n"))
}

func count(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// section is a heading with its text, or nothing if there is no text.
func section(title, text string) string {
	if text = trim(text); text == "" {
		return ""
	}
	return "## " + title + "\n\n" + text
}

// join puts a blank line between the parts that are not empty.
func join(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p = trim(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n")
}
