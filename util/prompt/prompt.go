// Package prompt writes what an agent is told: the format of its answer, its
// role, the task, what happened so far and what to do now. All agents share
// these parts, those in other languages through `uwf step prompt`. It is pure
// and its text depends on nothing but its arguments, so that a provider's
// prompt cache can hit.
package prompt

import "github.com/united-workforce/uwf/protocol"

// HistoryQuota is how many characters of earlier steps a prompt holds.
const HistoryQuota = 32000

// Step is an earlier step as far as a prompt needs it.
type Step struct {
	Number     int // from 1
	Role       string
	Agent      string
	Output     any
	Content    string // the answer's body; "" if unknown
	EdgePrompt string
}

// Parts are what a prompt is made of.
type Parts struct {
	Role       protocol.Role
	RoleName   string
	Schema     any    // of the role's output
	Structured bool   // the agent returns data itself: no format instruction
	Task       string // the thread's prompt
	History    []Step // newest first; steps since the role's last turn when Continuing
	Omitted    int    // older steps that were left out of History
	EdgePrompt string
	Cwd        string
	Visit      int  // how often the role has had its turn before
	Continuing bool // the agent still has the session of its last turn
}

// Full is the whole prompt as one message.
func Full(p Parts) string { panic("unwritten") }

// System is the part that stays the same over a role's turns (format, role);
// User is the rest. Full is both.
func System(p Parts) string { panic("unwritten") }
func User(p Parts) string   { panic("unwritten") }

// FormatInstruction says how an answer that satisfies the schema begins.
func FormatInstruction(schema any) string { panic("unwritten") }

// RolePrompt is the role's sections.
func RolePrompt(r protocol.Role) string { panic("unwritten") }

// Continuation is what happened since the role's last turn, and what to do now.
func Continuation(p Parts) string { panic("unwritten") }

// Correction asks for a valid answer; problem is the text of an extract error.
func Correction(problem string, schema any) string { panic("unwritten") }
