// Package agentkit is what an agent's main calls. It does everything but the
// role's work: arguments, the request with its prompt, extraction with
// corrections, the nodes, and the result line that the engine waits for.
//
//	func main() { agentkit.Run(agentkit.Options{Name: "echo", Run: run}) }
//
// What holds for every agent built on it (the contract is package protocol,
// agent.go):
//   - an agent writes content only; no head, no index, no other thread;
//   - all nodes of a step become durable in one commit, before the result line
//     names them; an agent that fails leaves nothing that anything refers to;
//   - an answer that does not satisfy the role's schema is never stored as output.
//
// agentkit links no HTTP client. Its signatures need package protocol and the
// standard library. Package agentkittest runs an agent in a test.
package agentkit

import (
	"context"
	"errors"
	"io"

	"github.com/united-workforce/uwf/protocol"
)

// Options describe an agent. Name and Run are required.
type Options struct {
	Name    string // "echo"; the prefix "uwf-" is added where it belongs
	Version string // "": from the build info
	// Run does the role's work. A panic in it is an error of the step.
	Run func(ctx context.Context, req *Request) (Result, error)
	// Continue sends a message into the session of an earlier Run or Continue,
	// to correct an answer. Nil: the agent cannot, and an answer that is not
	// valid fails the step.
	Continue func(ctx context.Context, sessionID, message string, req *Request) (Result, error)
	// Structured: the agent returns Result.Value; the prompt leaves the format out.
	Structured bool
	// Resumes: Run goes on in the session Request.SessionID when that is set.
	// ForksSessions: it can also go on in a copy of a session, as a forked thread needs.
	// CutsSessions: and in a copy of its beginning, up to Request.Cut.
	// CopiesSessions: it always goes on in a copy, unless Request.Interrupted, so that
	// a session stays as its step has left it.
	Resumes        bool
	ForksSessions  bool
	CutsSessions   bool
	CopiesSessions bool
	// ParseArgs takes the agent's own arguments out of args and returns the rest.
	// It sees what the kit does not know, in order; an error is a usage error.
	ParseArgs func(args []string) (rest []string, err error)
	// Usage is shown by --help, after the kit's own text.
	Usage string
	// Check reports the program that the agent drives, for --check. Nil: there is none.
	Check func(ctx context.Context) protocol.AgentCheck
	// Dispatch sees the command line before anything else: a tool may start the
	// agent's own program for a part that needs a process, such as
	// bind.Dispatch. If it returns true that was one, and its status is the exit
	// status. Nil: there is none.
	Dispatch func(args, environ []string, stderr io.Writer) (status int, dispatched bool)
}

// Result is what a run leads to. One of Output, Value and Suspend is set.
type Result struct {
	Output  string // text that begins with a frontmatter block
	Value   any    // structured data instead: a JSON value, or what encoding/json can write
	Suspend string // a reason to wait for a person instead
	// Limit, with Suspend: the provider's limit is the reason. Its Err is not used.
	Limit *Failure
	// ExtractedBy says how Value was won; "": the agent returned it as data.
	ExtractedBy protocol.ExtractedBy

	// SessionID names the conversation, for Continue and the next turn. It is
	// required, since a step without one cannot be traced or corrected.
	SessionID string
	// SessionMark is where the session is now, in words of the agent, if it can cut
	// one there: see Request.Cut.
	SessionMark string
	// Turns is what happened inside, if it was not recorded with [Request.Turn].
	// Its last assistant turn is the answer. Neither: the answer is kept as one turn.
	Turns []protocol.Turn
	// Detail may say Model, Outcome, Requests, DurationMs, and AgentVersion if it
	// is not the agent's own.
	Detail *protocol.Detail
	Usage  *protocol.Usage // of this run alone; the kit adds up
}

func (o Options) validate() error {
	var err error
	if o.Name == "" {
		err = errors.New("agentkit: Options.Name is required")
	}
	if o.Run == nil {
		err = errors.Join(err, errors.New("agentkit: Options.Run is required"))
	}
	return err
}
