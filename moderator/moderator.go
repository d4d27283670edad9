// Package moderator decides who is next. It is a pure function of the workflow
// and of what the thread has said so far: no model, no clock, no files.
package moderator

import "github.com/united-workforce/uwf/protocol"

// State is a thread as far as routing needs it.
type State struct {
	Workflow protocol.Workflow
	Start    protocol.Start
	Last     *Last // nil: no step yet
	// Limits in force: the workflow's, filled up from the config.
	Limits protocol.Limits
	// Visits, Steps: how often each role had its turn and how many steps there
	// were since a limit was last lifted.
	Visits map[string]int
	Steps  int
}

// Last is the newest step.
type Last struct {
	Role    string
	Output  any               // JSON value
	Suspend *protocol.Suspend // set if the step suspended
}

// Kind is what a decision is about.
type Kind string

// The kinds of decision.
const (
	Run     Kind = "run"     // run Role with Prompt at Location
	End     Kind = "end"     // completed
	Suspend Kind = "suspend" // wait for a person; resuming runs Role
)

// Cause tells why a thread is suspended.
type Cause string

// The causes.
const (
	ByTarget Cause = "target" // the graph leads to $SUSPEND
	ByOutput Cause = "output" // the role itself asked
	ByLimit  Cause = "limit"  // a limit was reached
)

// Decision is what happens next.
type Decision struct {
	Kind     Kind
	Role     string // to run, or that resuming runs
	Prompt   string // rendered; for Suspend the message to the person
	Location string // rendered; "" is the thread's directory
	Cause    Cause  // of a suspension
	Status   string // the status that was routed by
}

// RouteError means that the graph has no answer. Its text lists what exists.
type RouteError struct {
	Role    string
	Status  string
	Known   []string
	Message string
}

// Error implements error.
func (e *RouteError) Error() string { return e.Message }

// Next decides. Errors: *RouteError, *mustache errors wrapped with the edge's place.
func Next(s State) (Decision, error) { panic("unwritten") }

// Resume is the decision that a person's answer leads to, from a suspended or
// completed thread: run Role with the message and the supplement as prompt.
// For a completed thread (ended=true) it routes from $START.
func Resume(s State, ended bool, supplement string) (Decision, error) { panic("unwritten") }
