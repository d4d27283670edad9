package fileheads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Workflow returns the hash that a name stands for, or [heads.ErrNoWorkflow]. What cannot
// be a workflow's name names none, whatever the file says.
func (x *Heads) Workflow(ctx context.Context, name string) (protocol.Hash, error) {
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return "", fmt.Errorf("%w: the name %q %s", heads.ErrNoWorkflow, name, problem)
	}
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return "", err
	}
	h, err := f.get(name)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s", heads.ErrNoWorkflow, name)
	}
	return h, err
}

// Workflows returns the registry, sorted by name. With an error for a line that
// cannot be read it returns all the others.
func (x *Heads) Workflows(ctx context.Context) ([]heads.Named, error) {
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return nil, err
	}
	names := make([]heads.Named, 0, len(f.entries))
	for _, e := range f.entries {
		names = append(names, heads.Named{Name: e.key, Hash: e.hash, Problem: protocol.WorkflowNameProblem(e.key)})
	}
	return names, errors.Join(f.problems()...)
}

// Unregister takes a name away and returns the hash that it stood for, or
// [heads.ErrNoWorkflow].
func (x *Heads) Unregister(ctx context.Context, name string) (h protocol.Hash, err error) {
	err = x.locked(ctx, registryLock, func() error {
		f, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if h, err = f.get(name); err != nil {
			return err
		}
		if h == "" {
			return fmt.Errorf("%w: %s", heads.ErrNoWorkflow, name)
		}
		f.remove(name)
		return x.save(f)
	})
	return h, err
}

// Register points a name at a hash.
func (x *Heads) Register(ctx context.Context, name string, h protocol.Hash) error {
	if !h.Valid() {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%q is not a hash", h)}
	}
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("the name %q %s", name, problem)}
	}
	return x.locked(ctx, registryLock, func() error {
		f, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if _, err := f.get(name); err != nil {
			return err
		}
		f.set(name, h)
		return x.save(f)
	})
}

// misnamed takes out the entries whose keys cannot be a workflow's name.
func (t *table) misnamed() (bad []badLine) {
	t.entries = slices.DeleteFunc(t.entries, func(e entry) bool {
		problem := protocol.WorkflowNameProblem(e.key)
		if problem != "" {
			line := strings.TrimSuffix(string(t.appendLine(nil, e)), "\n")
			bad = append(bad, badLine{e.line, line, problem})
		}
		return problem != ""
	})
	return bad
}
