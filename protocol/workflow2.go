package protocol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// What version 2 adds to a workflow: what it asks of whoever starts it, and roles that no
// agent plays.

// Input is a value that a run is given when it is started.
type Input struct {
	Schema      Hash   `json:"schema"`
	Default     any    `json:"default,omitempty"` // nil: it has to be given
	Description string `json:"description,omitempty"`
}

// ChildRole is a part that is played as a thread of its own: a role of the same
// workflow, or another workflow.
type ChildRole struct {
	Role     string         `json:"role,omitempty"`
	Workflow Hash           `json:"workflow,omitempty"`
	Prompt   string         `json:"prompt,omitempty"`
	Inputs   map[string]any `json:"inputs,omitempty"`
}

// EachRole is a [ChildRole] for each item of a list.
type EachRole struct {
	Of string `json:"of"` // JSONata
	ChildRole
	Max int `json:"max,omitempty"` // items; 0: any number
}

// Parse says how what a command prints becomes its role's data.
type Parse string

// The ways to print data.
const (
	ParseJSON        Parse = "json"
	ParseFrontmatter Parse = "frontmatter" // a YAML block, as an agent's answer
)

// Player is who or what plays a role.
type Player string

// The players.
const (
	PlayedByAgent    Player = "agent"
	PlayedByCommand  Player = "command"
	PlayedByPerson   Player = "person"
	PlayedByWorkflow Player = "workflow"
	PlayedByAll      Player = "all"
	PlayedByEach     Player = "each"
)

// Player tells who plays the role.
func (r Role) Player() Player {
	if all := r.players(); len(all) > 0 {
		return all[0]
	}
	return PlayedByAgent
}

// HasChildren reports whether the role is played by threads of their own.
func (r Role) HasChildren() bool {
	switch r.Player() {
	case PlayedByWorkflow, PlayedByAll, PlayedByEach:
		return true
	}
	return false
}

// Uses are the other workflows that a workflow runs, each once, sorted.
func (w Workflow) Uses() []Hash {
	used := map[Hash]bool{}
	for _, r := range w.Roles {
		used[r.Workflow] = true
		for _, c := range r.All {
			used[c.Workflow] = true
		}
		if r.Each != nil {
			used[r.Each.Workflow] = true
		}
	}
	delete(used, "")
	return slices.Sorted(maps.Keys(used))
}

func (r Role) players() (all []Player) {
	for _, p := range []struct {
		named bool
		Player
	}{
		{len(r.Run) > 0, PlayedByCommand}, {r.Person, PlayedByPerson}, {r.Workflow != "", PlayedByWorkflow},
		{len(r.All) > 0, PlayedByAll}, {r.Each != nil, PlayedByEach},
	} {
		if p.named {
			all = append(all, p.Player)
		}
	}
	return all
}

// grown reports whether a workflow says what only version 2 can.
func (w Workflow) grown() bool {
	for _, r := range w.Roles {
		if r.grown() {
			return true
		}
	}
	return len(w.Inputs) > 0
}

func (r Role) grown() bool {
	return len(r.players())+len(r.Inputs)+len(r.Tools) > 0 || r.Merge || r.Memo ||
		r.Join != "" || r.Parallel != 0 || r.Parse != "" || r.TimeoutMs != 0 || r.Workspace != ""
}

// validateNew checks what version 2 adds.
func (r Role) validateNew() error {
	if len(r.players()) > 1 {
		return fmt.Errorf("it cannot be played by %s and %s at once", r.players()[0], r.players()[1])
	}
	err := wantOptional("workflow", r.Workflow)
	for key, c := range r.All {
		err = errors.Join(err, wantOptional("workflow of "+key, c.Workflow))
	}
	if r.Each != nil {
		err = errors.Join(err, wantOptional("workflow of each", r.Each.Workflow), wantNatural("max", r.Each.Max))
	}
	if r.Parse != "" && r.Parse != ParseJSON && r.Parse != ParseFrontmatter {
		err = errors.Join(err, fmt.Errorf("parse %q is unknown", r.Parse))
	}
	return errors.Join(err, wantNatural("parallel", r.Parallel), wantNatural("timeoutMs", int(min(r.TimeoutMs, 1))))
}

// wantOptional refuses what is neither a hash nor absent.
func wantOptional(field string, h Hash) error {
	if h == "" {
		return nil
	}
	return wantHash(field, h)
}
