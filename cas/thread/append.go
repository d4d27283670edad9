package thread

import (
	"context"
	"maps"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Next is what a new step says beyond its place in the chain.
type Next struct {
	Role, Agent, EdgePrompt, Cwd, SessionID string
	Output, Detail                          cas.Hash
	Prompt                                  *cas.Hash
	StartedAtMs, CompletedAtMs              int64
	ExtractedBy                             protocol.ExtractedBy
	Usage                                   *protocol.Usage
	LimitBase                               *int // nil: the previous step's
	Tries                                   []protocol.Try
	Root                                    string
	Files                                   *protocol.Files
	Children                                []protocol.ChildEnded
}

// Append adds the step that follows the head to a batch and returns its hash.
// Start, prev, index, visits and limitBase are derived from the head. The thread
// stays as it is: whoever moves the head opens it again. Errors: those of
// [cas.Batch.Add].
func (t *Thread) Append(ctx context.Context, b *cas.Batch, n Next) (cas.Hash, error) {
	s := protocol.Step{
		Start: t.StartHash, Index: t.Len(), Visits: map[string]int{},
		Role: n.Role, Agent: n.Agent, EdgePrompt: n.EdgePrompt, Cwd: n.Cwd, SessionID: n.SessionID,
		Output: n.Output, Detail: n.Detail, Prompt: n.Prompt,
		StartedAtMs: n.StartedAtMs, CompletedAtMs: n.CompletedAtMs,
		ExtractedBy: n.ExtractedBy, Usage: n.Usage, Tries: n.Tries, Root: n.Root, Files: n.Files, Children: n.Children,
	}
	if t.Last != nil {
		s.Prev = &t.Last.Hash
		s.LimitBase = t.Last.LimitBase
		maps.Copy(s.Visits, t.Last.Visits)
	}
	s.Visits[n.Role]++
	if n.LimitBase != nil {
		s.LimitBase = *n.LimitBase
	}
	return b.Add(ctx, s)
}
