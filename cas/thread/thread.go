// Package thread reads and extends the chain of a thread as typed values. It
// reads only as far as it is asked: opening a thread costs its head, its start
// and nothing else, however long it is.
package thread

import (
	"context"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Thread is a chain seen from its head.
type Thread struct {
	Head      cas.Hash
	StartHash cas.Hash
	Start     protocol.Start
	Last      *Step // nil if no step has been made
	// has unexported: reader
}

// Step is a step with its place in the store.
type Step struct {
	Hash      cas.Hash
	Timestamp int64
	protocol.Step
}

// Open reads the head (a start or a step node) and the start.
func Open(ctx context.Context, r cas.Reader, head cas.Hash) (*Thread, error) { panic("unwritten") }

// Len is the number of steps.
func (t *Thread) Len() int { panic("unwritten") }

// Steps yields the steps, newest first, reading one node each. A chain whose
// links do not fit (start, index, type) is a [*cas.CorruptError].
func (t *Thread) Steps(ctx context.Context) iter.Seq2[Step, error] { panic("unwritten") }

// Workflow reads the workflow that the thread runs.
func (t *Thread) Workflow(ctx context.Context) (protocol.Workflow, error) { panic("unwritten") }

// Output is a step's output: Value as a JSON value; Suspend set if the step suspended.
type Output struct {
	Type    cas.Hash
	Value   any
	Suspend *protocol.Suspend
}

// Output reads the output of a step.
func (t *Thread) Output(ctx context.Context, s Step) (Output, error) { panic("unwritten") }

// Content is the last answer of the agent in a step's detail, "" if there is none.
func Content(ctx context.Context, r cas.Reader, detail cas.Hash) (string, error) { panic("unwritten") }

// Next is what a new step says beyond its place in the chain.
type Next struct {
	Role, Agent, EdgePrompt, Cwd, SessionID string
	Output, Detail                          cas.Hash
	Prompt                                  *cas.Hash
	StartedAtMs, CompletedAtMs              int64
	ExtractedBy                             protocol.ExtractedBy
	Usage                                   *protocol.Usage
	LimitBase                               *int // nil: the previous step's
}

// Append adds the step that follows the head to a batch and returns its hash.
// Start, prev, index, visits and limitBase are derived from the head.
func (t *Thread) Append(ctx context.Context, b *cas.Batch, n Next) (cas.Hash, error) {
	panic("unwritten")
}
