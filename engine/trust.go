package engine

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/trust"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A workflow with commands runs them as the user. One that a person has named by its
// file or has registered is theirs; one that came with a bundle, or that stands in the
// place of a registered one, is confirmed once for each content. What was confirmed is
// a line of trusted.jsonl in the home; a line that cannot be read confirms nothing.

// UntrustedError means that a workflow with commands has not been confirmed.
type UntrustedError = trust.UntrustedError

// Commands are those of a workflow and of those that it runs, a line each.
func (e *Engine) Commands(ctx context.Context, w protocol.Workflow) ([]string, error) {
	lines, err := e.allCommands(ctx, w, map[protocol.Hash]bool{})
	if err != nil {
		return nil, fault.Of(err)
	}
	return lines, nil
}

// CommandsOf are those of a workflow alone, a line each.
func CommandsOf(w protocol.Workflow) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		if words := w.Roles[name].Run; len(words) > 0 {
			lines = append(lines, plaintext.Line(name)+" runs: "+plaintext.Literal(words))
		}
	}
	return lines
}

// allCommands are the commands of a workflow and of those that it runs. Hashes lead to no
// circle.
func (e *Engine) allCommands(ctx context.Context, w protocol.Workflow, seen map[protocol.Hash]bool) ([]string, error) {
	lines := CommandsOf(w)
	for _, h := range w.Uses() {
		if seen[h] {
			continue
		}
		seen[h] = true
		used, err := cas.Read[protocol.Workflow](ctx, e.Store, h)
		if err != nil {
			return nil, err
		}
		below, err := e.allCommands(ctx, used, seen)
		if err != nil {
			return nil, err
		}
		for _, line := range below {
			lines = append(lines, plaintext.Line(used.Name)+": "+line)
		}
	}
	return lines, nil
}

// NoteForeign keeps of the thread with a head, which was imported, that its workflow came
// from elsewhere, also when the thread is gone.
func (e *Engine) NoteForeign(ctx context.Context, head protocol.Hash) error {
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return fault.Of(err)
	}
	workflow := t.Start.Workflow
	known, err := e.trustFile().Confirmed(func(l trust.Line) bool { return l.Foreign == workflow })
	if err == nil && !known {
		err = e.trustFile().Confirm(trust.Line{Foreign: workflow, AtMs: e.nowMs()})
	}
	if err != nil {
		return fault.Of(fmt.Errorf("note where workflow %s is from: %w", workflow, err))
	}
	return nil
}

func (e *Engine) trustFile() trust.File {
	return trust.File{Path: filepath.Join(e.Dirs.Home, "trusted.jsonl"), FS: e.FS}
}

// Trust confirms that the commands of a workflow may run. Errors are *protocol.Error.
func (e *Engine) Trust(ctx context.Context, workflow protocol.Hash) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	known, err := e.trusted(ctx, workflow)
	if err != nil {
		return fault.Of(err)
	}
	if known {
		return nil
	}
	if err := e.trustFile().Confirm(trust.Line{Workflow: workflow, AtMs: e.nowMs()}); err != nil {
		return fault.Of(fmt.Errorf("confirm workflow %s: %w", workflow, err))
	}
	return nil
}

// TrustThread confirms that the commands of a thread from elsewhere and of its children may
// run, whatever words they have brought. Errors are *protocol.Error.
func (e *Engine) TrustThread(ctx context.Context, id string) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	if err := e.trustFile().Confirm(trust.Line{Thread: id, AtMs: e.nowMs()}); err != nil {
		return fault.Of(fmt.Errorf("confirm the commands of thread %s: %w", id, err))
	}
	return nil
}

// whoseWords are a thread and those that it is part of, itself first, and whether any of
// them comes from elsewhere; since is when the last of them came, in ms.
func (e *Engine) whoseWords(ctx context.Context, id string, facts heads.Facts) (line []string, foreign *heads.Facts, since int64, err error) {
	for {
		line = append(line, id)
		if facts.Imported != nil || facts.Doubt != nil {
			known := facts
			foreign = &known
		}
		if facts.Imported != nil {
			since = max(since, facts.Imported.AtMs)
		}
		if facts.Parent == nil {
			return line, foreign, since, nil
		}
		id = facts.Parent.Thread
		if facts, err = e.Heads.Facts(ctx, id); err != nil {
			return nil, nil, 0, err
		}
	}
}

// trustsWords is an error if the command of an attempt was rendered for a thread from
// elsewhere, and nobody has confirmed those since it came: an [*UntrustedError] in a
// *protocol.Error. The workflow may be one's own; its inputs and approvals are not. Who
// confirms a thread confirms its children; those of one child are shown for it alone.
func (a *attempt) trustsWords(ctx context.Context) error {
	line, foreign, since, err := a.whoseWords(ctx, a.locked.id, a.locked.facts)
	if err != nil || foreign == nil {
		return err
	}
	known, err := a.trustFile().Confirmed(func(l trust.Line) bool { return slices.Contains(line, l.Thread) && l.AtMs >= since })
	if err != nil || known {
		return err
	}
	untrusted := &UntrustedError{
		Workflow: a.pos.Thread.Start.Workflow, Name: a.pos.Workflow.Name, Why: a.whence(*foreign), Thread: a.locked.id,
		Commands: []string{plaintext.Line(a.task.role) + " runs: " + plaintext.Literal(a.cmd.Argv)},
	}
	hints := []string{
		"uwf thread read " + a.locked.id + " shows what it is about", "uwf thread trust " + a.locked.id + " confirms its commands, this and later ones",
	}
	if top := line[len(line)-1]; top != a.locked.id {
		hints = append(hints, "uwf thread trust "+top+" confirms those of all its children, which are not shown here")
	}
	return fault.Hinted(&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted}, hints...)
}

// trusted reports whether a workflow was confirmed, or is registered.
func (e *Engine) trusted(ctx context.Context, workflow protocol.Hash) (bool, error) {
	known, err := e.trustFile().Confirmed(func(l trust.Line) bool { return l.Workflow == workflow })
	if known || err != nil {
		return known, err
	}
	registry, ok := e.Heads.(heads.Registry)
	if !ok {
		return false, nil
	}
	names, err := registry.Workflows(ctx)
	return slices.ContainsFunc(names, func(n heads.Named) bool { return n.Hash == workflow && n.Problem == "" }), err
}

// MustTrust is an error if a workflow has commands and was not confirmed: an
// [*UntrustedError] in a *protocol.Error. why says why it has to be.
func (e *Engine) MustTrust(ctx context.Context, workflow protocol.Hash, why string) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, workflow)
	if err != nil {
		return fault.Of(err)
	}
	commands, err := e.allCommands(ctx, w, map[protocol.Hash]bool{})
	if err != nil {
		return fault.Of(err)
	}
	if len(commands) == 0 {
		return nil
	}
	known, err := e.trusted(ctx, workflow)
	if err != nil {
		return fault.Of(err)
	}
	if known {
		return nil
	}
	untrusted := &UntrustedError{Workflow: workflow, Name: w.Name, Why: why, Commands: commands}
	return fault.Hinted(&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted},
		"uwf workflow show "+string(workflow), "uwf workflow trust "+string(workflow)+" confirms it, as it is")
}

// came is why a workflow of a thread from elsewhere is confirmed.
const came = "came with a thread from elsewhere"

// trustsImported is [Engine.MustTrust] for the workflow of a thread from elsewhere.
func (e *Engine) trustsImported(ctx context.Context, h *lockedThread, facts heads.Facts) error {
	if facts.Imported == nil && facts.Doubt == nil {
		return nil
	}
	head := h.head
	for facts.Parent != nil { // who confirms a workflow confirms those that it runs
		above := facts.Parent.Thread
		var err error
		if head, _, err = e.Lookup(ctx, above); err != nil {
			return err
		}
		if facts, err = e.Heads.Facts(ctx, above); err != nil {
			return err
		}
	}
	t, err := thread.Open(ctx, e.Store, head)
	if err != nil {
		return nil //nolint:nilerr // the step will say what is wrong with the thread
	}
	return e.MustTrust(ctx, t.Start.Workflow, came)
}

// trustsStored is [Engine.MustTrust] for a workflow of which a thread from elsewhere
// was made: it may have come with that.
func (e *Engine) trustsStored(ctx context.Context, workflow protocol.Hash, w protocol.Workflow) error {
	if commands, err := e.allCommands(ctx, w, map[protocol.Hash]bool{}); err != nil || len(commands) == 0 {
		return err
	}
	switch noted, err := e.trustFile().Confirmed(func(l trust.Line) bool { return l.Foreign == workflow }); {
	case err != nil:
		return err
	case noted:
		return e.MustTrust(ctx, workflow, came)
	}
	all, err := e.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return err
	}
	for id, facts := range all {
		if facts.Imported == nil || facts.StartedHere() && facts.Fork == nil { // that has only gone on elsewhere
			continue
		}
		head, _, err := e.Lookup(ctx, id)
		if err != nil {
			continue
		}
		if t, err := thread.Open(ctx, e.Store, head); err == nil && t.Start.Workflow == workflow {
			return e.MustTrust(ctx, workflow, came)
		}
	}
	return nil
}
