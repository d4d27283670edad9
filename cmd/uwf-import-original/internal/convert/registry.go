package convert

import (
	"context"
	"errors"
	"strconv"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
	"github.com/united-workforce/uwf/protocol"
)

// workflows imports the registry. A name that has another value here keeps it.
func (b *importer) workflows(ctx context.Context) error {
	var names []source.Workflow
	done := map[string]cas.Hash{}
	for _, w := range b.source.Workflows {
		if problem := protocol.WorkflowNameProblem(w.Name); problem != "" {
			b.note("workflow", strconv.Quote(w.Name), "the name %s", problem)
			continue
		}
		if first, ok := done[w.Name]; ok {
			if first != w.Hash {
				b.note("workflow", w.Name, "%s has another version of it, %s", w.From, w.Hash)
			}
			continue
		}
		done[w.Name] = w.Hash
		ok, err := b.importWorkflow(ctx, w)
		if err != nil {
			return err
		}
		if ok {
			names = append(names, w)
		}
	}
	if b.options.DryRun {
		b.report.Workflows.Imported += len(names)
		return nil
	}
	if err := b.copy.flush(ctx); err != nil {
		return err
	}
	for _, w := range names {
		if err := b.index.Register(ctx, w.Name, w.Hash); err != nil {
			return err
		}
		b.report.Workflows.Imported++
	}
	return nil
}

// importWorkflow copies a workflow and reports whether it can be registered.
func (b *importer) importWorkflow(ctx context.Context, w source.Workflow) (bool, error) {
	fail := func(format string, args ...any) (bool, error) {
		b.problem("workflow", w.Name, format, args...)
		b.report.Workflows.Failed++
		return false, nil
	}
	if !w.Hash.Valid() {
		return fail("%s has %q for it, which is not a hash", w.From, w.Hash)
	}
	if _, err := cas.Read[protocol.Workflow](ctx, b.source.Nodes, w.Hash); err != nil {
		if !isOfNode(err) {
			return false, err
		}
		return fail("%v", err)
	}
	lost, err := b.copy.reach(ctx, w.Hash)
	if err != nil {
		return false, err
	}
	if len(lost) > 0 {
		return fail("%s", b.listLost(lost))
	}
	here, err := b.index.Workflow(ctx, w.Name)
	switch {
	case errors.Is(err, heads.ErrNoWorkflow):
		return true, nil
	case err != nil:
		return false, err
	case here == w.Hash:
		b.report.Workflows.Present++
		return false, nil
	}
	return fail("the name refers to %s here, but to %s in the original; nothing was changed", here, w.Hash)
}
