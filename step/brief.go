// Package step is both ends of a role's step: what the role is told before
// it ([NewBrief]), and what it leaves in the store after it ([Submit]). The
// agent kit and `uwf step prompt|turn|put` share it, so that an agent in any
// language is told the same and leaves the same.
//
// Its cost does not grow with the length of the thread: history is read newest
// first, and only as far as a prompt has room.
package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/prompt"
)

// Assignment is the step that a role is to make. Role is required.
type Assignment struct {
	Thread     string // id
	Role       string
	EdgePrompt string // "": the role's description serves
	Cwd        string
	Structured bool // the agent returns data itself: the prompt leaves the format out
	// Since is the node up to which the agent's session knows the thread (see
	// [LastStep]); "": there is no session, and the prompt is a full one.
	Since cas.Hash
	// Rejected is why the last answer in that session was not accepted.
	Rejected string
	Quota    int // characters of history; 0: prompt.HistoryQuota
}

// Brief is what a role is told. prompt.Full(b.Parts) is the text.
type Brief struct {
	Parts    prompt.Parts
	Workflow protocol.Workflow
	Role     protocol.Role
	Schema   any // of the role's output, as a JSON value
}

// RoleError means that a workflow has no such role.
type RoleError struct {
	Role, Workflow string
	Roles          []string // those that there are, sorted
}

// Error implements error.
func (e *RoleError) Error() string {
	return fmt.Sprintf("unknown role %q in workflow %q, which has: %s", e.Role, e.Workflow, strings.Join(e.Roles, ", "))
}

// NewBrief reads what a role is told. Errors: [*RoleError], those of package
// thread.
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
	history, omitted, err := history(ctx, r, t, a)
	if err != nil {
		return Brief{}, fmt.Errorf("history: %w", err)
	}
	return Brief{
		Workflow: w, Role: role, Schema: schema,
		Parts: prompt.Parts{
			Role: role, RoleName: a.Role, Schema: schema, Structured: a.Structured,
			Task: t.Start.Prompt, History: history, Omitted: omitted,
			EdgePrompt: edgePrompt(a, role), Cwd: a.Cwd,
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

// visits is how often a role has had its turn.
func visits(t *thread.Thread, role string) int {
	if t.Last == nil {
		return 0
	}
	return t.Last.Visits[role]
}
