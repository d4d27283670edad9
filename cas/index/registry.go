package index

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
)

// Named is an entry of the registry.
type Named struct {
	Name string
	Hash protocol.Hash
}

// Workflow returns the hash that a name stands for, or [ErrNoWorkflow].
func (x *Index) Workflow(ctx context.Context, name string) (protocol.Hash, error) {
	t, err := x.read(ctx, registryFile)
	if err != nil {
		return "", err
	}
	h, err := t.get(name)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s", ErrNoWorkflow, name)
	}
	return h, err
}

// Workflows returns the registry, sorted by name. With an error for a line that
// cannot be read it returns all the others.
func (x *Index) Workflows(ctx context.Context) ([]Named, error) {
	t, err := x.read(ctx, registryFile)
	if err != nil {
		return nil, err
	}
	names := make([]Named, 0, len(t.entries))
	for _, e := range t.entries {
		names = append(names, Named{Name: e.key, Hash: e.hash})
	}
	return names, t.problems()
}

// Register points a name at a hash.
func (x *Index) Register(ctx context.Context, name string, h protocol.Hash) error {
	if err := checkEntry(name, h); err != nil {
		return err
	}
	return x.locked(ctx, registryLock, func() error {
		t, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if err := t.writable(); err != nil {
			return err
		}
		if _, err := t.get(name); err != nil {
			return err
		}
		t.set(name, h)
		return x.save(t)
	})
}
