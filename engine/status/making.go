package status

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// MayWrite is an error if the reader is for reading alone.
func (r *Reader) MayWrite() error {
	if r.ReadOnly {
		return fault.New(protocol.CodeUsage, "this engine is read-only")
	}
	return nil
}

// HoldStore keeps the collector away until the new nodes are named by something that it reads:
// a head, or a run's record.
func (r *Reader) HoldStore(ctx context.Context) (release func(), err error) {
	if err := r.MayWrite(); err != nil {
		return nil, err
	}
	done, err := cas.Hold(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // it is also released when the process ends
}

// Batch is one of new nodes.
func (r *Reader) Batch() *cas.Batch { return cas.NewBatch(r.Store, r.Env.Now) }

// ChosenAgents returns the agents chosen for a thread, or else for its parent. Errors come from the
// heads.
func (r *Reader) ChosenAgents(ctx context.Context, facts heads.Facts) (map[string]string, error) {
	const generations = 100 // more than threads nest: damaged facts could lead in a circle
	for range generations {
		if facts.Agents != nil || facts.Parent == nil {
			break
		}
		above, err := r.Heads.Facts(ctx, facts.Parent.Thread)
		if err != nil {
			return nil, err
		}
		facts = above
	}
	return facts.Agents, nil
}
