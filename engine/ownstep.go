package engine

import (
	"cmp"
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
)

// own is the content of a step that the engine itself makes, for a role that no agent plays.
// It goes through the same checks as what an agent returns.
type own struct {
	agent  string
	output extract.Output
	by     protocol.ExtractedBy
	detail protocol.Detail // with turns of the same batch
	answer string          // the only turn, if the detail has none
	// Of a join: whose results it joins, and what they have cost.
	children []protocol.ChildEnded
	usage    *protocol.Usage
}

// submit makes the step of the attempt durable and leaves its result in the run
// directory: if this process is killed before the head has moved, the next one adopts
// it. The caller holds the store ([status.Reader.HoldStore]).
func (a *attempt) submit(ctx context.Context, b *cas.Batch, o own) (protocol.Result, error) {
	limitBase, nothing := a.task.limitBase, 0.0 // no model was asked: that is known
	ended := max(a.record.StartedAt, a.nowMs())
	usage := &protocol.Usage{CostUSD: &nothing, DurationMs: ended - a.record.StartedAt}
	if len(o.children) > 0 {
		usage = o.usage
	}
	return step.Submit(ctx, b, a.pos.Thread, step.Submission{
		Role: a.task.role, Type: a.pos.Workflow.Roles[a.task.role].Frontmatter,
		Output: o.output, ExtractedBy: o.by, Agent: o.agent, Detail: o.detail, Answer: o.answer,
		EdgePrompt: a.task.prompt, Cwd: a.task.cwd, RunDir: a.dir.Path,
		StartedAtMs: a.record.StartedAt, CompletedAtMs: ended, LimitBase: &limitBase,
		Usage: usage, Children: o.children,
		Snapshot: cmp.Or(a.kept.Told(), a.record.Snapshot), Files: a.locked.elsewhere.Tree, Environ: a.Env.Environ, Warn: a.warn,
	})
}

// judge is what an output of the attempt's role is checked against.
func (a *attempt) judge(ctx context.Context, b *cas.Batch) (extract.Role, error) {
	schema := a.pos.Workflow.Roles[a.task.role].Frontmatter
	value, err := cas.Schema(ctx, a.Nodes(), schema)
	if err != nil {
		return extract.Role{}, err
	}
	compiled, err := b.Compiled(ctx, schema)
	return extract.Role{Schema: value, Compiled: compiled}, err
}
