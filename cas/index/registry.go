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
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return "", err
	}
	h, err := f.get(name)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s", ErrNoWorkflow, name)
	}
	return h, err
}

// Workflows returns the registry, sorted by name. With an error for a line that
// cannot be read it returns all the others.
func (x *Index) Workflows(ctx context.Context) ([]Named, error) {
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return nil, err
	}
	t := f.parsed()
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
		f, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if err := f.writable(); err != nil {
			return err
		}
		if _, err := f.get(name); err != nil {
			return err
		}
		f.set(name, h)
		return x.save(f)
	})
}
