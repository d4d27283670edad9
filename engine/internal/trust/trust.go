// Package trust decides which workflows and threads from other origins may run here. A workflow with commands
// runs them as the user. One that the user runs by file or has registered is trusted. One that came with a
// bundle, or that hides a registered one, must be confirmed, once for each content.
//
// An imported thread also contains prompts and a directory that its author chose. A user must choose a
// directory for it and confirm its commands. This also applies to its forks and children. file.go stores the
// confirmations.
package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// Judge determines the origin of workflows and threads, and whether they are confirmed. Errors of its
// exported methods are *protocol.Error, or errors of the store.
type Judge struct{ *status.Reader }

// Commands returns the commands of a workflow and of the workflows that it runs, with the user's variables
// that they receive, one per line.
func (j Judge) Commands(ctx context.Context, h protocol.Hash, w protocol.Workflow) ([]string, error) {
	c, err := j.config(ctx)
	if err != nil {
		return nil, fault.Of(err)
	}
	lines, err := j.allCommands(ctx, c, h, w, map[protocol.Hash]bool{})
	return lines, fault.OrNil(err)
}

// config returns the config, which grants variables to commands.
func (j Judge) config(ctx context.Context) (protocol.Config, error) {
	if j.Config == nil {
		return protocol.Config{}, nil
	}
	return j.Config(ctx)
}

// CommandsOf returns the commands of a single workflow, with the variables that they receive, one per line. e
// is as in [config.Gets].
func CommandsOf(c protocol.Config, h protocol.Hash, w protocol.Workflow, e *env.Env) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		if role := w.Roles[name]; role.Player() == protocol.PlayedByCommand {
			words := moderator.CommandLine(role.Command(), role.Env)
			lines = append(lines, plaintext.Line(name)+" runs: "+plaintext.Literal(words))
		}
	}
	for _, line := range config.Gets(c, h, w, e) {
		lines = append(lines, plaintext.Line(line))
	}
	return lines
}

// allCommands returns the commands of a workflow and of the workflows that it runs. Hashes cannot form a
// cycle.
func (j Judge) allCommands(ctx context.Context, c protocol.Config, h protocol.Hash, w protocol.Workflow,
	seen map[protocol.Hash]bool) ([]string, error) {
	lines := CommandsOf(c, h, w, nil)
	for _, h := range w.Uses() {
		if seen[h] {
			continue
		}
		seen[h] = true
		used, err := cas.Read[protocol.Workflow](ctx, j.Store, h)
		if err != nil {
			return nil, err
		}
		below, err := j.allCommands(ctx, c, h, used, seen)
		if err != nil {
			return nil, err
		}
		for _, line := range below {
			lines = append(lines, plaintext.Line(used.Name)+": "+line)
		}
	}
	return lines, nil
}

// NoteForeign records that the workflow of an imported thread came from another origin, so that this is known
// even after the thread is deleted.
func (j Judge) NoteForeign(ctx context.Context, head protocol.Hash) (err error) {
	defer fault.Coded(&err)
	t, err := thread.Open(ctx, j.Store, head)
	if err != nil {
		return err
	}
	workflow := t.Start.Workflow
	known, err := j.file().Confirmed(func(l Line) bool { return l.Foreign == workflow })
	if err == nil && !known {
		err = j.confirm(Line{Foreign: workflow})
	}
	if err != nil {
		return fmt.Errorf("record the origin of workflow %s: %w", workflow, err)
	}
	return nil
}

func (j Judge) file() File {
	return File{Path: filepath.Join(j.Dirs.Home, "trusted.jsonl"), FS: j.FS}
}

func (j Judge) confirm(l Line) error {
	l.AtMs = j.Env.Now().UnixMilli()
	return j.file().Confirm(l)
}

// Trust confirms that the commands of a workflow may run, and may receive the variables that the config
// grants by its name, or by the name of a workflow that it runs. Errors are *protocol.Error.
func (j Judge) Trust(ctx context.Context, workflow protocol.Hash) (err error) {
	defer fault.Coded(&err)
	if err := j.trust(ctx, workflow); err != nil {
		return err
	}
	w, err := cas.Read[protocol.Workflow](ctx, j.Store, workflow)
	if err != nil {
		return err
	}
	waiting, err := j.ungranted(ctx, workflow, w)
	for _, h := range waiting {
		err = errors.Join(err, j.confirm(Line{Granted: h}))
	}
	return err
}

// trust confirms only the commands.
func (j Judge) trust(ctx context.Context, workflow protocol.Hash) error {
	if err := j.MayWrite(); err != nil {
		return err
	}
	known, err := j.trusted(ctx, workflow)
	if err == nil && !known {
		err = j.confirm(Line{Workflow: workflow})
	}
	if err != nil {
		return fault.Of(fmt.Errorf("trust workflow %s: %w", workflow, err))
	}
	return nil
}

// TrustOwn confirms a workflow that the owner supplied and that returns with one of their threads. A workflow
// that ever came with another user's thread is not confirmed.
func (j Judge) TrustOwn(ctx context.Context, workflow protocol.Hash) error {
	if err := j.MustTrust(ctx, workflow, imported); !errors.As(err, new(*UntrustedError)) {
		return err
	}
	noted, err := j.file().Confirmed(func(l Line) bool { return l.Foreign == workflow })
	if noted || err != nil {
		return fault.OrNil(err)
	}
	return j.trust(ctx, workflow)
}

// ThreadCommands returns the workflow of a thread, and all commands of that workflow and the workflows that
// it runs, one per line. Errors are *protocol.Error.
func (j Judge) ThreadCommands(ctx context.Context, id string) (workflow protocol.Hash, commands []string, err error) {
	defer fault.Coded(&err)
	facts, err := j.Heads.Facts(ctx, id)
	if err != nil {
		return "", nil, err
	}
	head, _, err := j.Lookup(ctx, id)
	if err != nil {
		return "", nil, err
	}
	if workflow, err = j.given(ctx, head, facts); err != nil {
		return "", nil, err
	}
	w, err := cas.Read[protocol.Workflow](ctx, j.Store, workflow)
	if err != nil {
		return "", nil, err
	}
	commands, err = j.Commands(ctx, workflow, w)
	return workflow, commands, err
}

// TrustThread confirms that the commands of an imported thread and of its children may run, whatever their
// arguments are. It also confirms the commands of its workflow. Errors are *protocol.Error.
func (j Judge) TrustThread(ctx context.Context, id string) error {
	if err := j.MayWrite(); err != nil {
		return err
	}
	workflow, commands, err := j.ThreadCommands(ctx, id)
	if err != nil {
		return err
	}
	if len(commands) > 0 {
		if err := j.Trust(ctx, workflow); err != nil {
			return err
		}
	}
	if err := j.confirm(Line{Thread: id}); err != nil {
		return fault.Of(fmt.Errorf("trust the commands of thread %s: %w", id, err))
	}
	return nil
}

// author returns a thread and its ancestors, starting with the thread, and the facts of one of them that
// is imported, if any. since is when the newest of these was imported, in Unix milliseconds.
func (j Judge) author(ctx context.Context, id string,
	facts heads.Facts) (line []string, foreign *heads.Facts, since int64, err error) {
	for {
		if slices.Contains(line, id) {
			return nil, nil, 0, fault.New(protocol.CodeCorrupt, "thread %s is its own ancestor", id)
		}
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
		if facts, err = j.Heads.Facts(ctx, id); err != nil {
			return nil, nil, 0, err
		}
	}
}

// Words returns an error if a role's command was rendered for an imported thread whose commands have not been
// confirmed since the import. The error is a *protocol.Error that wraps a [*UntrustedError]. The workflow may
// be the user's own, but its inputs and approvals are not. argv includes the variables. Confirming a thread
// confirms its children; the commands of a child are shown for that child alone.
func (j Judge) Words(ctx context.Context, pos *status.Position, facts heads.Facts, role string, argv []string) error {
	line, foreign, since, err := j.author(ctx, pos.ID, facts)
	if err != nil || foreign == nil {
		return err
	}
	known, err := j.file().Confirmed(func(l Line) bool { return slices.Contains(line, l.Thread) && l.AtMs >= since })
	if err != nil || known {
		return err
	}
	untrusted := &UntrustedError{
		Workflow: pos.Thread.Start.Workflow, Name: pos.Workflow.Name, Why: j.whence(*foreign), Thread: pos.ID,
		Commands: []string{plaintext.Line(role) + " runs: " + plaintext.Literal(argv)},
	}
	if names, _ := j.Granted(ctx, pos, role); len(names) > 0 { // their confirmation is checked later
		untrusted.Commands = append(untrusted.Commands, plaintext.Line(role)+": gets "+strings.Join(names, ", "))
	}
	top := line[len(line)-1]
	if top == pos.ID {
		top = ""
	}
	return (&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted}).Because("untrusted",
		"thread", pos.ID, "top", top)
}

// trusted reports whether a workflow is confirmed or registered.
func (j Judge) trusted(ctx context.Context, workflow protocol.Hash) (bool, error) {
	known, err := j.file().Confirmed(func(l Line) bool { return l.Workflow == workflow })
	if known || err != nil {
		return known, err
	}
	registry, ok := j.Heads.(heads.Registry)
	if !ok {
		return false, nil
	}
	names, err := registry.Workflows(ctx)
	return slices.ContainsFunc(names, func(n heads.Named) bool { return n.Hash == workflow && n.Problem == "" }), err
}

// MustTrust returns an error if a workflow has commands and is not confirmed: a *protocol.Error that wraps an
// [*UntrustedError]. why explains why it must be confirmed.
func (j Judge) MustTrust(ctx context.Context, workflow protocol.Hash, why string) (err error) {
	defer fault.Coded(&err)
	w, err := cas.Read[protocol.Workflow](ctx, j.Store, workflow)
	if err != nil {
		return err
	}
	commands, err := j.Commands(ctx, workflow, w)
	if err != nil || len(commands) == 0 {
		return err
	}
	if known, err := j.trusted(ctx, workflow); known || err != nil {
		return err
	}
	untrusted := &UntrustedError{Workflow: workflow, Name: w.Name, Why: why, Commands: commands}
	return (&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted}).Because(
		"untrusted-workflow", "workflow", string(workflow))
}

// ungranted returns the workflows, among a workflow and those that it runs, whose commands receive variables
// by name without confirmation for this content.
func (j Judge) ungranted(ctx context.Context, workflow protocol.Hash, w protocol.Workflow) (found []protocol.Hash, err error) {
	c, err := j.config(ctx)
	if err != nil || c.Commands == nil || len(c.Commands.PassEnv) == 0 {
		return nil, err
	}
	seen := map[protocol.Hash]bool{workflow: true}
	all := []protocol.Hash{workflow}
	for i := 0; i < len(all); i++ {
		if i > 0 {
			if w, err = cas.Read[protocol.Workflow](ctx, j.Store, all[i]); err != nil {
				return nil, err
			}
		}
		for _, used := range w.Uses() {
			if !seen[used] {
				seen[used], all = true, append(all, used)
			}
		}
		gets := slices.ContainsFunc(slices.Collect(maps.Keys(w.Roles)), func(role string) bool {
			_, named := config.Granted(c, all[i], w.Name, role)
			return len(named) > 0 && w.Roles[role].Player() == protocol.PlayedByCommand
		})
		if !gets {
			continue
		}
		known, err := j.file().Confirmed(func(l Line) bool { return l.Granted == all[i] })
		if err != nil {
			return nil, err
		}
		if !known {
			found = append(found, all[i])
		}
	}
	return found, nil
}

// MustGrant returns an error if a command of a workflow, or of a workflow that it runs, receives variables by
// workflow name without confirmation for this content. The error is a *protocol.Error that wraps an
// [*UntrustedError]. The confirmation is required wherever the workflow comes from, because anyone can use
// the name. name is the name to use for the confirmation; "" means the hash.
func (j Judge) MustGrant(ctx context.Context, workflow protocol.Hash, w protocol.Workflow, name string) (err error) {
	defer fault.Coded(&err)
	waiting, err := j.ungranted(ctx, workflow, w)
	if err != nil || len(waiting) == 0 {
		return err
	}
	commands, err := j.Commands(ctx, workflow, w)
	if err != nil {
		return err
	}
	untrusted := &UntrustedError{Workflow: workflow, Name: w.Name, Commands: commands,
		Why: "gets environment variables by its name (commands.passEnv)"}
	return (&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted}).Because("ungranted",
		"workflow", cmp.Or(name, string(workflow)), "hash", string(workflow))
}

// Granted returns the variables that the command of a role receives. Errors are the same as for
// [Judge.MustGrant].
func (j Judge) Granted(ctx context.Context, pos *status.Position, role string) ([]string, error) {
	c, err := j.config(ctx)
	if err != nil || c.Commands == nil || len(c.Commands.PassEnv) == 0 {
		return nil, fault.OrNil(err)
	}
	workflow, w, err := j.defining(ctx, pos.Thread.Start, pos.Workflow)
	if err != nil {
		return nil, fault.Of(err)
	}
	proven, named := config.Granted(c, workflow, w.Name, role)
	if len(named) > 0 {
		err = j.MustGrant(ctx, workflow, w, "")
	}
	return append(proven, named...), err
}

// defining returns the workflow whose file defines the roles of a thread: its parent's if the thread plays a
// role of that, else its own.
func (j Judge) defining(ctx context.Context, s protocol.Start, w protocol.Workflow) (protocol.Hash, protocol.Workflow, error) {
	h := s.Workflow
	for s.Child != nil && len(w.Roles) == 1 {
		above, err := thread.Open(ctx, j.Store, s.Child.Of)
		if err != nil {
			return h, w, err
		}
		of, err := above.Workflow(ctx)
		if err != nil {
			return h, w, err
		}
		part, err := j.Batch().Add(ctx, moderator.RoleWorkflow(of, slices.Collect(maps.Keys(w.Roles))[0]))
		if err != nil || part != h {
			break //nolint:nilerr // the parent has no such role, so it runs another workflow
		}
		s, h, w = above.Start, above.Start.Workflow, of
	}
	return h, w, nil
}

// imported is the reason for confirming the workflow of an imported thread.
const imported = "came with a thread from another machine"

// Imported is like [Judge.MustTrust] for the workflow of an imported thread.
func (j Judge) Imported(ctx context.Context, id string, head protocol.Hash, facts heads.Facts) error {
	if facts.Imported == nil && facts.Doubt == nil {
		return nil
	}
	workflow, err := j.given(ctx, head, facts)
	if fault.IsDamage(err) {
		return nil // the step reports the error
	}
	if err == nil {
		err = j.MustTrust(ctx, workflow, imported)
	}
	if coded := (*protocol.Error)(nil); errors.As(err, new(*UntrustedError)) && errors.As(err, &coded) {
		coded.Reasons = []protocol.Reason{protocol.Why("untrusted", "thread", id)}
	}
	return err
}

// given returns the workflow of a thread's topmost ancestor, or of the thread itself. Confirming a workflow
// confirms the workflows that it runs.
func (j Judge) given(ctx context.Context, head protocol.Hash, facts heads.Facts) (workflow protocol.Hash, err error) {
	line, _, _, err := j.author(ctx, "", facts)
	if err == nil && len(line) > 1 {
		head, _, err = j.Lookup(ctx, line[len(line)-1])
	}
	if err != nil {
		return "", err
	}
	t, err := thread.Open(ctx, j.Store, head)
	if err != nil {
		return "", err
	}
	return t.Start.Workflow, nil
}

// Stored is like [Judge.MustTrust] for a workflow that may have arrived with an imported thread.
func (j Judge) Stored(ctx context.Context, workflow protocol.Hash, w protocol.Workflow) error {
	if commands, err := j.Commands(ctx, workflow, w); err != nil || len(commands) == 0 {
		return err
	}
	switch noted, err := j.file().Confirmed(func(l Line) bool { return l.Foreign == workflow }); {
	case err != nil:
		return err
	case noted:
		return j.MustTrust(ctx, workflow, imported)
	}
	all, err := j.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return err
	}
	for id, facts := range all {
		if facts.Imported == nil || facts.StartedHere() && facts.Fork == nil { // it was started here and only continued on another machine
			continue
		}
		head, _, err := j.Lookup(ctx, id)
		if err != nil {
			continue
		}
		if t, err := thread.Open(ctx, j.Store, head); err == nil && t.Start.Workflow == workflow {
			return j.MustTrust(ctx, workflow, imported)
		}
	}
	return nil
}

// MustSayWhere returns the error for an imported thread without a directory, with the facts that the user
// needs for the decision. again is the request to repeat with a directory.
func (j Judge) MustSayWhere(ctx context.Context, id string, head protocol.Hash, facts heads.Facts, again string) error {
	workflow, dir, doubt := "unknown", "unknown", ""
	if facts.Doubt != nil {
		doubt = "yes"
	}
	if t, err := thread.Open(ctx, j.Store, head); err == nil {
		dir = cwd.Shown(t.Start.Cwd)
		if w, err := t.Workflow(ctx); err == nil {
			workflow = fmt.Sprintf("%s %s", cwd.Shown(w.Name), t.Start.Workflow)
		}
	}
	return fault.New(protocol.CodeUsage, "thread %s has no directory here:\n  it %s\n  it runs workflow %s\n  it worked in %s",
		id, j.whence(facts), workflow, dir).Because("no-cwd", "thread", id, "again", again, "dir", j.Env.Dir, "doubt", doubt)
}

// Inherited returns the facts of a fork at a node. If the node belongs to an imported thread, or to no thread
// of this home, the fork counts as imported.
func (j Judge) Inherited(ctx context.Context, t *thread.Thread, node protocol.Hash) (heads.Facts, error) {
	origin, known, err := j.of(ctx, t.StartHash)
	if err != nil {
		return heads.Facts{}, err
	}
	facts := heads.Facts{Fork: &heads.Fork{Thread: origin, Step: node}} // its own cost starts at zero
	imported := known.Imported
	switch {
	case origin == "":
		imported = &heads.Imported{AtMs: j.Env.Now().UnixMilli()}
	case known.Doubt != nil:
		imported = &heads.Imported{Lost: true}
	}
	if imported != nil {
		inherited := *imported
		inherited.Inherited, inherited.Lost = true, false // the fork itself was made here
		facts.Imported, facts.Workspace = &inherited, known.Workspace
	}
	if own := known.Limits; own != nil {
		facts.Limits = budget.ToFacts(own.Limits)
	}
	return facts, nil
}

// of finds the thread of this home that has a start node, or returns "". Among several, it prefers imported
// threads to local ones, their originals to forks, and threads without a chosen directory to others.
func (j Judge) of(ctx context.Context, start protocol.Hash) (id string, known heads.Facts, err error) {
	all, damaged := j.Heads.AllFacts(ctx)
	if damaged != nil && all == nil {
		return "", heads.Facts{}, damaged
	}
	standings, _ := heads.ThreadStates(ctx, j.Heads) // unreadable threads cannot be forked
	// Least trusted first, then newest first, because most forks are made from recent threads.
	ids := slices.SortedFunc(maps.Keys(standings), func(a, b string) int {
		return cmp.Or(originRank(all[b])-originRank(all[a]), threadid.Compare(b, a))
	})
	for _, other := range ids {
		t, err := thread.Open(ctx, j.Store, standings[other].Head)
		if err != nil || t.StartHash != start {
			continue // unreadable, or another start
		}
		return other, all[other], ctx.Err()
	}
	return "", heads.Facts{}, ctx.Err()
}

// originRank ranks how foreign a thread is; higher is more foreign.
func originRank(facts heads.Facts) int {
	rank := 0
	if facts.Imported != nil || facts.Doubt != nil {
		rank++
		if !facts.StartedHere() {
			rank += 2
		}
	}
	if facts.Foreign() {
		rank++
	}
	return rank
}

// whence describes why a thread counts as imported.
func (j Judge) whence(facts heads.Facts) string {
	imported := facts.Imported
	switch {
	case facts.Doubt != nil:
		return fmt.Sprintf("may come from another machine: %v", facts.Doubt)
	case imported.From == "" && imported.Lost:
		return "may come from another machine: its line in facts.jsonl was damaged or lost"
	case imported.From == "":
		return "comes from another machine: no thread of this home made its steps"
	}
	at := time.UnixMilli(imported.AtMs).In(j.Env.Now().Location()).Format(time.DateOnly)
	return fmt.Sprintf("was imported from %s on %s", cwd.Shown(imported.From), at)
}
