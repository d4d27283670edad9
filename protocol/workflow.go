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
	InputsVariable = "$inputs" // the thread's inputs, in every template and condition
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

	// Version 2.
	Inputs map[string]Input `json:"inputs,omitempty"` // what a run needs besides its prompt
}

// Role says who plays a part, and what must come of it. Texts that its author left
// out are empty, so that a short role is stored as it always was.
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

	// Version 2. At most one of the first five is set; if none is, an agent plays the
	// role.
	Run      []string             `json:"run,omitempty"`      // a command, a template in each word
	Person   bool                 `json:"person,omitempty"`   // a person answers
	Workflow Hash                 `json:"workflow,omitempty"` // a run of another workflow
	All      map[string]ChildRole `json:"all,omitempty"`      // several at once, by key
	Each     *EachRole            `json:"each,omitempty"`     // one for each item

	Inputs    map[string]any `json:"inputs,omitempty"`    // of Workflow
	Join      string         `json:"join,omitempty"`      // JSONata: what their results are together
	Parallel  int            `json:"parallel,omitempty"`  // children at once; 0: any number
	Parse     Parse          `json:"parse,omitempty"`     // what Run prints as data
	TimeoutMs int64          `json:"timeoutMs,omitempty"` // of Run; 0: that of every step
	Workspace string         `json:"workspace,omitempty"` // of children
	Merge     bool           `json:"merge,omitempty"`     // what the children changed
	Tools     []string       `json:"tools,omitempty"`
	Memo      bool           `json:"memo,omitempty"`
}

// Condition is a named JSONata expression for transition lists.
type Condition struct {
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression"`
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
		if err := r.validateNew(); err != nil {
			return fmt.Errorf("workflow: role %q: %w", name, err)
		}
	}
	for name, i := range w.Inputs {
		if !i.Schema.Valid() {
			return fmt.Errorf("workflow: input %q: schema %q is not a hash", name, i.Schema)
		}
	}
	for _, x := range AllLimits() {
		if w.Limits != nil && !(x.Number(*w.Limits) >= 0) {
			return errors.New("workflow: limits cannot be negative")
		}
	}
	return nil
}
