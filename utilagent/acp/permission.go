package acp

import (
	"encoding/json"
	"slices"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// The kinds of tools that a permission allows. What is not listed, also a kind
// that we do not know, is allowed by bypass alone.
var (
	reading = []string{"read", "search", "think"}
	editing = []string{"edit", "delete", "move"}
)

// allows decides about a tool call.
func (s *service) allows(c *call) bool {
	switch s.permission {
	case cliagent.Bypass:
		return true
	case cliagent.Edits:
		return slices.Contains(reading, c.kind) || slices.Contains(editing, c.kind) && s.inside(c.paths)
	}
	return slices.Contains(reading, c.kind)
}

// inside reports whether all paths lead into the workspace. A call that names none
// cannot be judged by them; the agent's own sandbox is what is left.
func (s *service) inside(paths []string) bool {
	for _, p := range paths {
		if !s.space.Contains(p) {
			return false
		}
	}
	return true
}

// choose picks the option for a decision, by its kind and never by its place.
// One that is for now comes before one that the agent would remember. "": there
// is none.
func choose(options []permissionOption, allow bool) string {
	kinds := []string{"reject_once", "reject_always"}
	if allow {
		kinds = []string{"allow_once", "allow_always"}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}

var permissionCancelled = permissionResult{permissionOutcome{Outcome: "cancelled"}}

// permit answers a request for permission. While a prompt is being cancelled the
// answer is always that it was.
func (s *service) permit(raw json.RawMessage) (permissionResult, error) {
	var p permissionParams
	if err := lenient(raw, &p); err != nil {
		return permissionResult{}, &RPCError{Code: codeInvalidParams, Message: err.Error()}
	}
	c, going := s.telling(p.ToolCall.toolCall, p.ToolCall.Content)
	if !going {
		return permissionCancelled, nil
	}
	allow := s.allows(c)
	if !allow {
		s.refuse(c.about())
	}
	option := choose(p.Options, allow)
	if option == "" {
		return permissionCancelled, nil
	}
	return permissionResult{permissionOutcome{Outcome: "selected", Option: option}}, nil
}
