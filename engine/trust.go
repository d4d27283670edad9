package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
)

// A workflow with commands runs them as the user. One that a person has named by its
// file or has registered is theirs; one that came with a bundle, or that stands in the
// place of a registered one, is confirmed once for each content. What was confirmed is
// a line of trusted.jsonl in the home; a line that cannot be read confirms nothing.

// UntrustedError means that a workflow with commands has not been confirmed.
type UntrustedError struct {
	Workflow protocol.Hash
	Name     string
	Why      string   // it has to be, as words that follow its name
	Commands []string // a line each
}

// Error implements error.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("workflow %s %s, and runs commands as you; nothing runs before you have confirmed it:\n  %s",
		plaintext.Line(e.Name), e.Why, strings.Join(e.Commands, "\n  "))
}

// Commands are those of a workflow and of those that it runs, a line each.
func (e *Engine) Commands(ctx context.Context, w protocol.Workflow) ([]string, error) {
	lines, err := e.allCommands(ctx, w, nil)
	if err != nil {
		return nil, coded(err)
	}
	return lines, nil
}

func commandsOf(w protocol.Workflow) []string {
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
func (e *Engine) allCommands(ctx context.Context, w protocol.Workflow, seen []protocol.Hash) ([]string, error) {
	lines := commandsOf(w)
	for _, h := range w.Uses() {
		if slices.Contains(seen, h) {
			continue
		}
		seen = append(seen, h)
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

// trustLine is a line of the file.
type trustLine struct {
	Workflow protocol.Hash `json:"workflow"`
	AtMs     int64         `json:"atMs"`
}

// maxTrusted bounds the file, in bytes.
const maxTrusted = 16 << 20

func (e *Engine) trustFile() string { return filepath.Join(e.Dirs.Home, "trusted.jsonl") }

// Trust confirms that the commands of a workflow may run. Errors are *protocol.Error.
func (e *Engine) Trust(ctx context.Context, workflow protocol.Hash) error {
	if err := e.mayWrite(); err != nil {
		return err
	}
	known, err := e.trusted(ctx, workflow)
	if err != nil {
		return coded(err)
	}
	if known {
		return nil
	}
	line, err := json.Marshal(trustLine{workflow, e.nowMs()})
	if err != nil {
		return coded(err)
	}
	if err := e.FS.Append(e.trustFile(), append(line, '\n'), 0o600, durable.FullFlush); err != nil {
		return coded(fmt.Errorf("confirm workflow %s: %w", workflow, err))
	}
	return nil
}

// trusted reports whether a workflow was confirmed, or is registered.
func (e *Engine) trusted(ctx context.Context, workflow protocol.Hash) (bool, error) {
	data, err := careful.ReadFile(e.trustFile(), maxTrusted, careful.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read what was confirmed: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		var l trustLine
		if json.Unmarshal([]byte(line), &l) == nil && l.Workflow == workflow {
			return true, nil
		}
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
		return coded(err)
	}
	commands, err := e.allCommands(ctx, w, nil)
	if err != nil {
		return coded(err)
	}
	if len(commands) == 0 {
		return nil
	}
	known, err := e.trusted(ctx, workflow)
	if err != nil {
		return coded(err)
	}
	if known {
		return nil
	}
	untrusted := &UntrustedError{Workflow: workflow, Name: w.Name, Why: why, Commands: commands}
	return hinted(&protocol.Error{Code: protocol.CodeUsage, Message: untrusted.Error(), Err: untrusted},
		"uwf workflow show "+string(workflow), "uwf workflow trust "+string(workflow)+" confirms it, as it is")
}

// came is why a workflow of a thread from elsewhere is confirmed.
const came = "came with a thread from elsewhere"

// trustsImported is [Engine.MustTrust] for the workflow of a thread from elsewhere.
func (e *Engine) trustsImported(ctx context.Context, h *hold, facts heads.Facts) error {
	if facts.Imported == nil && facts.Doubt == nil {
		return nil
	}
	head := h.head
	for facts.Parent != nil { // who confirms a workflow confirms those that it runs
		above := facts.Parent.Thread
		var err error
		if head, _, err = e.lookup(ctx, above); err != nil {
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
	if commands, err := e.allCommands(ctx, w, nil); err != nil || len(commands) == 0 {
		return err
	}
	all, err := e.Heads.AllFacts(ctx)
	if err != nil && all == nil {
		return err
	}
	for id, facts := range all {
		if facts.Imported == nil {
			continue
		}
		head, _, err := e.lookup(ctx, id)
		if err != nil {
			continue
		}
		if t, err := thread.Open(ctx, e.Store, head); err == nil && t.Start.Workflow == workflow {
			return e.MustTrust(ctx, workflow, came)
		}
	}
	return nil
}
