package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Reserved names in a graph.
const (
	StartNode   = "$START"   // where a thread begins; the only node that is not a role
	EndNode     = "$END"     // target: the thread is completed
	SuspendNode = "$SUSPEND" // target: the thread waits for a person

	StatusKey     = "$status" // the output field that routes
	DefaultStatus = "_"       // the edge that is always taken
	StartAlias    = "new"     // accepted at $START instead of "_"
	ResumeStatus  = "resume"  // optional edge of $START: where a completed thread goes on

	PromptVariable = "$prompt" // the thread's prompt, in every template
)

// Workflow is a stored workflow: roles and the graph that routes between them.
// It names no agent: who plays a role is deployment, not workflow.
type Workflow struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Roles       map[string]Role      `json:"roles"`
	Conditions  map[string]Condition `json:"conditions,omitempty"`
	Graph       map[string]GraphNode `json:"graph"`
	Limits      *Limits              `json:"limits,omitempty"`
}

// Role says who an agent is and what it must deliver.
type Role struct {
	Description  string   `json:"description"`
	Goal         string   `json:"goal"`         // who the agent is
	Capabilities []string `json:"capabilities"` // never nil when stored
	Procedure    string   `json:"procedure"`    // how it works
	Output       string   `json:"output"`       // what it delivers
	// Frontmatter is the JSON Schema node of the role's structured output.
	Frontmatter Hash `json:"frontmatter"`
	// ExtractPrompt heads the LLM extraction, if that is switched on.
	ExtractPrompt string `json:"extractPrompt,omitempty"`
}

// Condition is a named JSONata expression for transition lists.
type Condition struct {
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression"`
}

// Limits bound a run; zero means no limit of its own.
type Limits struct {
	MaxSteps         int `json:"maxSteps,omitempty"`
	MaxVisitsPerRole int `json:"maxVisitsPerRole,omitempty"`
}

// Edge is one way out of a graph node.
type Edge struct {
	Role     string `json:"role"`               // a role, $END or $SUSPEND
	Prompt   string `json:"prompt,omitempty"`   // mustache; empty: the role's description serves
	Location string `json:"location,omitempty"` // mustache; empty: the thread's directory
}

// Transition is an edge in a list: the first whose condition holds is taken.
type Transition struct {
	Edge
	// Condition is a name in Workflow.Conditions or an inline expression;
	// empty means always.
	Condition string `json:"condition,omitempty"`
}

// GraphNode is the way out of a node in one of two forms: a map from status to
// edge, or a list of transitions. Exactly one of the fields is set.
type GraphNode struct {
	Edges       map[string]Edge
	Transitions []Transition
}

// MarshalJSON writes the form that is set: an object or an array.
func (n GraphNode) MarshalJSON() ([]byte, error) {
	if n.Transitions != nil {
		return json.Marshal(n.Transitions)
	}
	if n.Edges == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(n.Edges)
}

// UnmarshalJSON reads either form.
func (n *GraphNode) UnmarshalJSON(b []byte) error {
	*n = GraphNode{}
	b = bytes.TrimSpace(b)
	switch {
	case len(b) > 0 && b[0] == '[':
		return json.Unmarshal(b, &n.Transitions)
	case len(b) > 0 && b[0] == '{':
		return json.Unmarshal(b, &n.Edges)
	}
	return errors.New("graph node: want an object of edges or a list of transitions")
}

// Validate reports what the JSON Schema of the kind would refuse.
func (w Workflow) Validate() error {
	if w.Roles == nil || w.Graph == nil {
		return errors.New("workflow: roles and graph are required")
	}
	for name, r := range w.Roles {
		if !r.Frontmatter.Valid() {
			return fmt.Errorf("workflow: role %q: frontmatter %q is not a hash", name, r.Frontmatter)
		}
		if r.Capabilities == nil {
			return fmt.Errorf("workflow: role %q: capabilities must be a list", name)
		}
	}
	if l := w.Limits; l != nil && (l.MaxSteps < 0 || l.MaxVisitsPerRole < 0) {
		return errors.New("workflow: limits cannot be negative")
	}
	return nil
}
