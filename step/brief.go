// Package step implements both ends of a role's step: the prompt before it ([NewBrief]) and the nodes stored
// after it ([Submit]). The agent kit and `uwf step prompt|turn|put` share it, so agents in any language get
// the same prompts and store the same nodes.
//
// The cost of a step doesn't grow with the length of the thread: history is read newest first, and only until
// the prompt is full.
package step

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/step/prompt"
)

// Assignment describes a step to be made. Role is required.
type Assignment struct {
	Thread     string // id
	Role       string
	EdgePrompt string // "" means the role's description
	Cwd        string
	Artifacts  string // see [prompt.Parts]
	Structured bool   // the agent returns structured data, so the prompt omits the format
	// Since is the last node that the agent's session knows (see [LastStep]). If it is "", there is no
	// session, and the prompt is complete.
	Since cas.Hash
	// Rejected is the reason why the last answer in that session was rejected.
	Rejected string
	Quota    int // characters of history; 0 means prompt.HistoryQuota
}

// Brief is the content of a role's prompt. prompt.Full(b.Parts) returns its text.
type Brief struct {
	Parts    prompt.Parts
	Workflow protocol.Workflow
	Role     protocol.Role
	Schema   any // of the role's output, as a JSON value
}

// RoleError means that a workflow has no such role.
type RoleError struct {
	Role, Workflow string
	Roles          []string // existing roles, sorted
}

func (e *RoleError) Error() string {
	return fmt.Sprintf("unknown role %q in workflow %q, which has: %s", e.Role, e.Workflow, strings.Join(e.Roles, ", "))
}

// NewBrief returns the content of a role's prompt. Its error is a *[RoleError] or comes from package thread.
func NewBrief(ctx context.Context, r cas.Reader, t *thread.Thread, a Assignment) (Brief, error) {
	w, err := t.Workflow(ctx)
	if err != nil {
		return Brief{}, fmt.Errorf("workflow: %w", err)
	}
	role, ok := w.Roles[a.Role]
	if !ok {
		return Brief{}, &RoleError{Role: a.Role, Workflow: w.Name, Roles: slices.Sorted(maps.Keys(w.Roles))}
	}
	schema, err := cas.Schema(ctx, r, role.Frontmatter)
	if err != nil {
		return Brief{}, fmt.Errorf("role %s: output %w", a.Role, err)
	}
	shown, omitted, err := history(ctx, r, t, a)
	if err != nil {
		return Brief{}, fmt.Errorf("history: %w", err)
	}
	return Brief{
		Workflow: w, Role: role, Schema: schema,
		Parts: prompt.Parts{
			Role: role, RoleName: a.Role, Schema: schema, Structured: a.Structured,
			Task: t.Start.Prompt, History: shown, Omitted: omitted,
			EdgePrompt: edgePrompt(a, role), Cwd: a.Cwd, Artifacts: a.Artifacts,
			Thread: a.Thread, Number: t.Len() + 1, Visit: visits(t, a.Role),
			Continuing: a.Since != "", Rejected: a.Rejected,
		},
	}, nil
}

func edgePrompt(a Assignment, r protocol.Role) string {
	if strings.TrimSpace(a.EdgePrompt) == "" {
		return r.Description
	}
	return a.EdgePrompt
}

// visits returns the number of the role's steps.
func visits(t *thread.Thread, role string) int {
	if t.Last == nil {
		return 0
	}
	return t.Last.Visits[role]
}

// lookBack is the number of steps searched for a role's last one. An older session has little value, and the
// search must not grow with the thread.
const lookBack = 50

// LastStep returns the newest step of a role among the newest 50 steps, or false.
func LastStep(ctx context.Context, t *thread.Thread, role string) (thread.Step, bool, error) {
	if visits(t, role) == 0 {
		return thread.Step{}, false, nil
	}
	n := 0
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return thread.Step{}, false, err
		}
		if s.Role == role {
			return s, true, nil
		}
		if n++; n == lookBack {
			break
		}
	}
	return thread.Step{}, false, nil
}

// history returns the newest steps after a.Since that fit, and the number of steps omitted.
func history(ctx context.Context, r cas.Reader, t *thread.Thread, a Assignment) ([]prompt.Step, int, error) {
	known, err := knownSteps(ctx, r, t, a.Since)
	if err != nil {
		return nil, 0, err
	}
	steps, err := prompt.History(after(ctx, r, t, known), a.Quota)
	return steps, t.Len() - known - len(steps), err
}

// knownSteps returns the number of steps known to a session that ends at a node, which must be part of t.
func knownSteps(ctx context.Context, r cas.Reader, t *thread.Thread, since cas.Hash) (int, error) {
	if since == "" || since == t.StartHash {
		return 0, nil
	}
	s, err := thread.Open(ctx, r, since)
	if err != nil {
		return 0, err
	}
	if s.StartHash != t.StartHash || s.Len() > t.Len() {
		return 0, fmt.Errorf("step %s is not part of this thread", since)
	}
	return s.Len(), nil
}

// after returns the steps after the first known ones, newest first, with the fields that a prompt needs.
func after(ctx context.Context, r cas.Reader, t *thread.Thread, known int) iter.Seq2[prompt.Step, error] {
	return func(yield func(prompt.Step, error) bool) {
		if t.Len() == known {
			return
		}
		for s, err := range t.Steps(ctx) {
			var p prompt.Step
			if err == nil {
				p, err = promptStep(ctx, r, t, s)
			}
			if !yield(p, err) || err != nil || s.Index == known {
				return
			}
		}
	}
}

// promptStep returns the fields of a step that a prompt needs.
func promptStep(ctx context.Context, r cas.Reader, t *thread.Thread, s thread.Step) (prompt.Step, error) {
	out, err := t.Shown(ctx, s)
	if err != nil {
		return prompt.Step{}, fmt.Errorf("output of step %d: %w", s.Index+1, err)
	}
	content := ""
	if s.Agent != protocol.CommandAgent { // its output contains what it printed
		if content, err = thread.Content(ctx, r, s.Detail); err != nil {
			return prompt.Step{}, fmt.Errorf("detail of step %d: %w", s.Index+1, err)
		}
	}
	return prompt.Step{
		Number: s.Index + 1, Role: s.Role, Agent: s.Agent, Output: out.Value, Content: beyondOutput(content, s.ExtractedBy),
	}, nil
}

// beyondOutput returns the part of an answer outside its output, which a prompt already contains: repeating
// it would waste the quota.
func beyondOutput(content string, by protocol.ExtractedBy) string {
	switch by {
	case protocol.ByFrontmatter:
		if body, ok := frontmatter.Body(content); ok {
			return body
		}
	case protocol.ByValue:
		if json.Valid([]byte(content)) {
			return ""
		}
	}
	return content
}
