// Package moderator decides who is next. It is a pure function of the workflow
// and of what the thread has said so far: no model, no clock, no files.
//
// A thread that began and has no step yet stands at $START; after a step it
// stands at the node of that step's role. A node is a map or a list. In a map the
// step's status picks the edge; in a list the first one whose condition holds is
// taken (condition.go). The edge names who is next, with which prompt, in which
// directory. Limits and a role's own wish to suspend come in between.
package moderator

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/protocol"
)

// State is a thread as far as routing needs it: the newest step and the counts,
// so that a decision costs the same however long the thread is. Only a condition
// over the history reads more.
type State struct {
	Workflow protocol.Workflow
	Start    protocol.Start
	Last     *Last // nil: no step yet
	// Depth is the number of steps of the thread, and History yields them, newest
	// first. It is only called if a condition can touch it; what it errs with is
	// what [Next] errs with.
	Depth   int
	History iter.Seq2[HistoryStep, error]
	// Limits in force: the workflow's, filled up from the config. Zero is no limit.
	Limits protocol.Limits
	// Visits, Steps: how often each role had its turn and how many steps there
	// were since a limit was last lifted.
	Visits map[string]int
	Steps  int
	Spent  Spent
	// KeyOf names an item of a role that is played for each of several: equal items
	// alike, others differently. Nil: all alike, for whoever asks only who is next.
	KeyOf func(item any) (string, error)

	toAgent bool // the question is for the agent that continues with its answer
}

// Last is the newest step.
type Last struct {
	Role     string
	Output   any               // JSON value
	Suspend  *protocol.Suspend // set if the step suspended
	Location string            // where the step ran: a resumed role runs there again
}

// Kind is what a decision is about.
type Kind string

// The kinds of decision.
const (
	Run     Kind = "run"     // run Role with Prompt at Location
	End     Kind = "end"     // completed
	Fan     Kind = "fan"     // Role is played by Children
	Suspend Kind = "suspend" // wait for a person; resuming runs Role, or a person answers for it
)

// Cause tells why a thread is suspended.
type Cause string

// The causes.
const (
	ByTarget Cause = "target" // the graph leads to $SUSPEND
	ByOutput Cause = "output" // the role itself asked
	ByLimit  Cause = "limit"  // a limit of steps was reached
	ByBudget Cause = "budget" // a limit of what the run may cost was reached
	ByPerson Cause = "person" // the role that is next is played by a person
)

// Decision is what happens next.
type Decision struct {
	Kind Kind
	Role string // to run, or that resuming runs
	// Prompt is rendered. For Suspend it is the message to the person; for End
	// the closing words, "" if the edge has none.
	Prompt   string
	Location string // rendered; "" is the thread's directory
	// Command is rendered: the words of a role that is a command, if the graph leads to
	// it. Whom a person's answer leads back to runs what it ran before.
	Command []string
	// Children play the role together, if it has any, in the order of their names or
	// items.
	Children []Child
	// Cause of a suspension; of a Run from Resume, the cause of the suspension
	// that it answers. A limit that a person lifted shows here.
	Cause  Cause
	Status string // the status that was routed by
}

// Next decides. It errs if the graph has no answer (*[RouteError]), a condition
// fails (*[ConditionError]) or a template cannot be rendered (*[TemplateError]);
// the thread then stays where it is. A context that ends stops a condition.
func Next(ctx context.Context, s State) (Decision, error) {
	if reason, ok := asksToSuspend(s.Last); ok {
		return Decision{Kind: Suspend, Role: s.Last.Role, Prompt: reason, Cause: ByOutput, Status: protocol.SuspendNode}, nil
	}
	d, err := route(ctx, s)
	if err != nil || d.Kind != Run && d.Kind != Fan {
		return d, err
	}
	if s.Workflow.Roles[d.Role].Person { // whom no limit needs to call
		d.Kind, d.Cause = Suspend, ByPerson
		return d, nil
	}
	if reason, ok := atLimit(s, d.Role); ok {
		return Decision{Kind: Suspend, Role: d.Role, Prompt: reason, Cause: ByLimit, Status: d.Status}, nil
	}
	if reason, ok := OverBudget(s, d.Role); ok {
		return Decision{Kind: Suspend, Role: d.Role, Prompt: reason, Cause: ByBudget, Status: d.Status}, nil
	}
	return d, nil
}
