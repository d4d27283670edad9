package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/suggest"
)

// workflow finds the workflow that a person means, storing a file's content if
// it is one. In this order: a hash; a file (has a slash or ends in .yaml or
// .yml); a file of the project (.workflows/, .workflow/); the registry; a hash in
// other letters, or a unique prefix of one.
func (a *app) workflow(ctx context.Context, arg string) (cas.Hash, error) {
	arg = strings.TrimSpace(arg)
	if protocol.Hash(arg).Valid() {
		return a.workflowByHash(ctx, protocol.Hash(arg))
	}
	if isPath(arg) {
		def, err := a.readWorkflow(ctx, a.path(arg))
		if err != nil {
			return "", err
		}
		return a.storeWorkflow(ctx, def)
	}
	found, err := a.discover()
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(found, func(f workflow.Found) bool { return f.Name == arg }); i >= 0 {
		def, err := a.readFound(ctx, found[i])
		if err != nil {
			return "", err
		}
		return a.storeWorkflow(ctx, def)
	}
	x, err := a.index()
	if err != nil {
		return "", err
	}
	h, err := x.Workflow(ctx, arg)
	switch {
	case errors.Is(err, heads.ErrNoWorkflow):
		return a.workflowByPrefix(ctx, arg, found)
	case err != nil:
		return "", err
	}
	return h, a.leadsToWorkflow(ctx, x, arg, h)
}

// workflowByPrefix finds a workflow by the beginning of its hash, in any case.
// Nodes of other kinds that begin so do not count.
func (a *app) workflowByPrefix(ctx context.Context, arg string, found []workflow.Found) (cas.Hash, error) {
	const fewest, most = 4, 64 // characters; nodes to look at
	prefix := protocol.FoldCrockford(arg)
	if len(prefix) < fewest || len(prefix) > protocol.HashLen || !protocol.Hash(prefix+"0000000000000"[len(prefix):]).Valid() {
		return "", a.unknownWorkflow(ctx, arg, found)
	}
	s, err := a.store(ctx)
	if err != nil {
		return "", err
	}
	var matches []string
	looked := 0
	for h, err := range s.All(ctx, prefix) {
		if err != nil {
			return "", err
		}
		if looked++; looked > most {
			return "", notFound(fmt.Sprintf("workflow %q is ambiguous: more than %d nodes begin so", arg, most), "give more characters")
		}
		if _, err := cas.Read[protocol.Workflow](ctx, s, h); err == nil {
			matches = append(matches, string(h))
		} else if len(prefix) == protocol.HashLen {
			return a.workflowByHash(ctx, h) // says what is wrong with it
		}
	}
	switch len(matches) {
	case 0:
		return "", a.unknownWorkflow(ctx, arg, found)
	case 1:
		return cas.Hash(matches[0]), nil
	}
	return "", ambiguous("workflow", arg, matches)
}

// leadsToWorkflow is an error if a name in the registry leads to no workflow.
func (a *app) leadsToWorkflow(ctx context.Context, x *fileheads.Heads, name string, h cas.Hash) error {
	s, err := a.store(ctx)
	if err != nil {
		return err
	}
	_, err = cas.Read[protocol.Workflow](ctx, s, h)
	if errors.Is(err, cas.ErrNotFound) || errors.As(err, new(*cas.TypeError)) {
		return &protocol.Error{
			Code: protocol.CodeCorrupt, Message: fmt.Sprintf("%s: the name %q leads to no workflow: %v", x.WorkflowPlace(ctx, name), name, err), Err: err,
			Hints: []string{"uwf workflow put <file.yaml> registers it anew"},
		}
	}
	return nil // whoever uses it will say what else is wrong
}

func (a *app) workflowByHash(ctx context.Context, h cas.Hash) (cas.Hash, error) {
	s, err := a.store(ctx)
	if err != nil {
		return "", err
	}
	_, err = cas.Read[protocol.Workflow](ctx, s, h)
	var kind *cas.TypeError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return "", notFound(fmt.Sprintf("workflow not found: %s", h), "uwf workflow list")
	case errors.As(err, &kind):
		return "", invalid(fmt.Sprintf("node %s is not a workflow", h), "uwf workflow list")
	}
	return h, err
}

func (a *app) unknownWorkflow(ctx context.Context, arg string, found []workflow.Found) error {
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	if x, err := a.index(); err == nil {
		if registered, err := x.Workflows(ctx); err == nil {
			for _, n := range registered {
				if n.Problem == "" {
					names = append(names, n.Name)
				}
			}
		}
	}
	hints := []string{"uwf workflow list", "uwf workflow put <file.yaml>"}
	if near := suggest.Nearest(arg, names, 3); len(near) > 0 {
		hints = append([]string{"did you mean " + strings.Join(near, ", ") + "?"}, hints...)
	}
	return notFound(fmt.Sprintf("workflow not found: %s", arg), hints...)
}

func isPath(arg string) bool {
	return strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

// path makes an argument absolute.
func (a *app) path(arg string) string {
	if filepath.IsAbs(arg) {
		return filepath.Clean(arg)
	}
	return filepath.Join(a.env.Dir, arg)
}

// nearFiles are hints at a file that somebody may have meant.
func (a *app) nearFiles(path string) []string {
	hints := []string{"uwf workflow list"}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return append([]string{"there is no directory " + a.shown(filepath.Dir(path))}, hints...)
	}
	if near := cmdline.NearFile(a.env.Dir, path); near != "" {
		at := a.shown(near)
		if !filepath.IsAbs(at) && !strings.HasPrefix(at, ".") {
			at = "./" + at
		}
		hints = append([]string{"did you mean " + at + "?"}, hints...)
	}
	return hints
}

// payload is the content of any node, for workflow files that refer to one.
func (a *app) payload(ctx context.Context, h protocol.Hash) (any, error) {
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	n, err := s.Get(ctx, h)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, errors.New("the store has no such node")
	}
	if err != nil {
		return nil, err
	}
	return n.Value()
}

// shown is a path as short as it can be said from here.
func (a *app) shown(path string) string {
	for _, here := range []string{a.env.Dir, realPath(a.env.Dir)} {
		if rel, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}

// storeWorkflow stores a workflow, durably, and returns its hash.
func (a *app) storeWorkflow(ctx context.Context, def workflow.Definition) (cas.Hash, error) {
	b, h, err := a.stored(ctx, def)
	if err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", fmt.Errorf("store workflow %q: %w", def.Name, err)
	}
	return h, nil
}

// stored are the nodes of a workflow, and its hash. Nothing is written yet.
func (a *app) stored(ctx context.Context, def workflow.Definition) (*cas.Batch, cas.Hash, error) {
	s, err := a.store(ctx)
	if err != nil {
		return nil, "", err
	}
	b := cas.NewBatch(s, a.env.Now)
	w, err := def.Store(func(role string, schema any) (protocol.Hash, error) {
		h, err := b.AddSchema(ctx, schema)
		if err != nil {
			return "", fmt.Errorf("schema of role %q: %w", role, err)
		}
		return h, nil
	})
	if err != nil {
		return nil, "", err
	}
	h, err := b.Add(ctx, w)
	return b, h, err
}
