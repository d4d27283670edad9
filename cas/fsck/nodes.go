package fsck

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
)

// knowing reads the schemas of our kinds also where the store has lost them:
// without them nobody could tell what depends on what.
type knowing struct{ *fsstore.Store }

// Get implements [cas.Getter].
func (k knowing) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := k.Store.Get(ctx, h)
	if err == nil {
		return n, nil
	}
	if known, ok := k.Kinds().Builtin(h); ok {
		return known, nil
	}
	return n, err
}

// seen is what one node said.
type seen struct {
	id     census.ID
	refs   []cas.Hash // its type included
	step   *step
	faults []Fault
	// tombstone is set if it was redacted.
	tombstone *cas.Tombstone
}

// examine checks one node by itself. Many run at once.
func (c *check) examine(ctx context.Context, inspector *cas.Inspector, id census.ID, n cas.Node, err error) seen {
	out := seen{id: id}
	h := c.graph.Hash(id)
	wrong := func(kind Kind, message string) {
		out.faults = append(out.faults, Fault{Kind: kind, Hash: h, Path: c.store.Path(h), Message: message})
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		out.tombstone = &redacted.Tombstone
		return out
	}
	if err != nil {
		wrong(kindOf(err), reason(err))
		var corrupt *cas.CorruptError
		out.faults[0].cut = errors.As(err, &corrupt) && corrupt.Cut
		return out
	}
	refs, err := inspector.Inspect(ctx, n)
	out.refs = append(refs, n.Type)
	switch {
	case err == nil:
		err = c.place(ctx, n, &out)
		if err != nil {
			wrong(Invalid, reason(err))
		}
	case isOthersFault(err, h):
		// The type is missing or damaged, which is reported with the type.
		if _, err := c.store.Get(ctx, n.Type); err == nil {
			wrong(Invalid, fmt.Sprintf("its type %s is not a schema", n.Type))
		}
	default:
		wrong(kindOf(err), reason(err))
	}
	if n.Timestamp > c.limit {
		wrong(Future, fmt.Sprintf("its timestamp, %d ms, is in the future", n.Timestamp))
	}
	return out
}

// isOthersFault reports whether an error is about another node, the type.
func isOthersFault(err error, h cas.Hash) bool {
	var corrupt *cas.CorruptError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) && corrupt.Hash != h
}

// kindOf tells damage from what could not be read at all.
func kindOf(err error) Kind {
	var (
		corrupt *cas.CorruptError
		schema  *cas.SchemaError
	)
	switch {
	case errors.As(err, &corrupt):
		return Damaged
	case errors.As(err, &schema):
		return Invalid
	case errors.Is(err, cas.ErrNotFound):
		return Missing
	}
	return Unreadable
}

// reason is an error without what the fault says already.
func reason(err error) string {
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		return corrupt.Reason
	}
	return err.Error()
}

// place reads where a step stands. Of the other kinds nothing is read: their
// schemas say all that their programs ask for.
func (c *check) place(ctx context.Context, n cas.Node, out *seen) error {
	kind, version, err := c.store.Kinds().Of(ctx, knowing{c.store}, n.Type)
	if err != nil || kind != protocol.KindStep {
		return err
	}
	var s protocol.Step
	if version == 0 {
		s, _, err = cas.OriginalStep(ctx, knowing{c.store}, n)
	} else {
		s, err = cas.As[protocol.Step](ctx, c.store, n)
	}
	if err != nil {
		return err
	}
	if out.step = newStep(s); version == 0 {
		out.step.index = unplaced
	}
	return nil
}

// take collects what a chunk of nodes said.
func (c *check) take(nodes []seen) {
	for _, n := range nodes {
		c.graph.Add(n.id, n.refs...)
		if n.tombstone != nil {
			c.bury(n.id, *n.tombstone)
		}
		if n.step != nil {
			c.steps[n.id] = *n.step
		}
		for _, f := range n.faults {
			c.fault(f)
		}
	}
}

// expectFoundation names the schemas that every store of ours begins with, so
// that they are missed if they are not there.
func (c *check) expectFoundation() {
	if !c.store.Exists() || c.store.Originals() {
		return
	}
	for _, n := range c.store.Kinds().Foundation() {
		c.graph.Node(n.Hash)
	}
}

func (c *check) inspector() *cas.Inspector {
	return cas.NewInspector(knowing{c.store})
}

// absent looks for the nodes that are named but were not listed. One that was
// put since is checked now.
func (c *check) absent(ctx context.Context) error {
	inspector := c.inspector()
	for _, id := range c.graph.Absent() {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := c.graph.Name(id)
		n, err := c.store.Get(ctx, h)
		if err == nil {
			_, err = inspector.Inspect(ctx, n)
		}
		if _, redacted := cas.AsRedacted(err); redacted {
			continue // since
		}
		switch {
		case err == nil || isOthersFault(err, h) && !errors.Is(err, cas.ErrNotFound):
		case errors.Is(err, cas.ErrNotFound):
			c.fault(Fault{Kind: Missing, Hash: h, Path: c.store.Path(h), Message: "the node is named but not there"})
		default:
			c.fault(Fault{Kind: kindOf(err), Hash: h, Path: c.store.Path(h), Message: reason(err)})
		}
	}
	return nil
}
