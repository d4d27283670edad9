package protocol

import (
	"bytes"
	_ "embed" // for reference.md
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reserved names in a graph.
const (
	StartNode   = "$START"   // where a thread starts; the only node that is not a role
	EndNode     = "$END"     // target: the thread is completed
	SuspendNode = "$SUSPEND" // target: the thread waits for a person
	FailNode    = "$FAIL"    // target: the thread has failed permanently

	StatusKey     = "$status" // the output field that selects the edge
	ErrorStatus   = "$error"  // edge taken if a role could not be played
	DefaultStatus = "_"       // edge that is always taken
	StartAlias    = "new"     // accepted at $START instead of "_"
	ResumeStatus  = "resume"  // optional edge of $START: where a completed thread restarts

	PromptVariable = "$prompt" // the thread's prompt, in all templates
	InputsVariable = "$inputs" // the thread's inputs, in all templates and conditions
	StepsVariable  = "$steps"  // the newest answer of each role, in all templates and conditions
	BodyVariable   = "$body"   // the text after the last answer's frontmatter, in all templates and conditions

	ArtifactsVariable = "$artifacts" // the directory of [EnvArtifacts], in prompts and command lines
)

// Workflow is a stored workflow: roles and the graph that routes between them. It contains no agents, because
// who plays a role is a matter of deployment.
type Workflow struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Roles       map[string]Role      `json:"roles"`
	Conditions  map[string]Condition `json:"conditions,omitempty"`
	Graph       map[string]GraphNode `json:"graph"`
	Limits      *Limits              `json:"limits,omitempty"`

	// Version 2.
	Inputs map[string]Input `json:"inputs,omitempty"` // inputs of a run in addition to its prompt

	// Language is [Language3] if the workflow uses features of version 3, else 0.
	Language int `json:"language,omitempty"`
}

// Language3 marks a workflow that older programs must not run, because they would misinterpret it.
const Language3 = 3

// Role defines who plays a role, and what the result must be. Texts omitted by the author are empty, so that
// the node of a short role doesn't change.
type Role struct {
	Description  string   `json:"description"`
	Goal         string   `json:"goal"`         // who the agent is
	Capabilities []string `json:"capabilities"` // never nil when stored
	Procedure    string   `json:"procedure"`    // how it works
	Output       string   `json:"output"`       // what it delivers
	// Frontmatter is the hash of the JSON Schema of the role's structured output.
	Frontmatter Hash `json:"frontmatter"`
	// ExtractPrompt is the start of the prompt for extraction by a model, if that is enabled.
	ExtractPrompt string `json:"extractPrompt,omitempty"`

	// Version 2. At most one of the first five, Script and Compute is set. If none is, an agent plays the
	// role.
	Run      []string             `json:"run,omitempty"`      // command line; each word is a template
	Person   bool                 `json:"person,omitempty"`   // a person answers
	Workflow Hash                 `json:"workflow,omitempty"` // a run of another workflow
	All      map[string]ChildRole `json:"all,omitempty"`      // several children, by key
	Each     *EachRole            `json:"each,omitempty"`     // one child per item

	Inputs    map[string]any `json:"inputs,omitempty"`    // for Workflow
	Join      string         `json:"join,omitempty"`      // JSONata expression for the joined results
	Parallel  int            `json:"parallel,omitempty"`  // maximum concurrent children; 0 means unlimited
	Parse     Parse          `json:"parse,omitempty"`     // how Run's output is parsed as data
	TimeoutMs int64          `json:"timeoutMs,omitempty"` // for Run; 0 means the timeout of all steps
	Workspace string         `json:"workspace,omitempty"` // for children
	Merge     bool           `json:"merge,omitempty"`     // merge the children's file changes
	Tools     []string       `json:"tools,omitempty"`
	Memo      bool           `json:"memo,omitempty"`

	// Version 3.
	Script    string            `json:"script,omitempty"`    // command as one text, without templates
	Shell     []string          `json:"shell,omitempty"`     // words before Script; nil means sh -e -c
	Env       map[string]string `json:"env,omitempty"`       // for Run and Script; each value is a template
	Compute   string            `json:"compute,omitempty"`   // JSONata expression for the answer
	OnFailure OnFailure         `json:"onFailure,omitempty"` // for children
}

// Command returns the stored words of a command role, or nil for other roles. The words of a script are not
// templates.
func (r Role) Command() []string {
	if r.Script == "" {
		return r.Run
	}
	shell := r.Shell
	if len(shell) == 0 {
		shell = []string{"sh", "-e", "-c"}
	}
	return append(slices.Clone(shell), r.Script)
}

// OnFailure is the effect of a child's failure on its role.
type OnFailure string

// ContinueOnFailure makes the failure a result, next to the results of the others.
const ContinueOnFailure OnFailure = "continue"

// Condition is a named JSONata expression for transition lists.
type Condition struct {
	Description string `json:"description,omitempty"`
	Expression  string `json:"expression"`
}

// Edge is an outgoing edge of a graph node.
type Edge struct {
	Role     string `json:"role"`               // a role, $END or $SUSPEND
	Prompt   string `json:"prompt,omitempty"`   // mustache template; "" means the role's description
	Location string `json:"location,omitempty"` // mustache template; "" means the thread's directory
}

// Transition is an edge in a list. The first one whose condition is true is taken.
type Transition struct {
	Edge
	// Condition is a name in Workflow.Conditions or an inline expression; "" is always true.
	Condition string `json:"condition,omitempty"`
}

// GraphNode holds the outgoing edges of a node in one of two forms: a map from status to edge, or a list of
// transitions. Exactly one of the fields is set.
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

// Validate returns an error if the JSON Schema of the kind rejects the payload.
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
		if r.third() && w.Language != Language3 {
			return fmt.Errorf("workflow: role %q needs language %d", name, Language3)
		}
	}
	if w.Language != 0 && w.Language != Language3 {
		return fmt.Errorf("workflow: language %d is unknown", w.Language)
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

// Additions of version 2 to workflows: inputs, and roles that no agent plays.

// Input is an input that a run receives when it is started.
type Input struct {
	Schema      Hash   `json:"schema"`
	Default     any    `json:"default,omitempty"` // nil if the input is required
	Description string `json:"description,omitempty"`
}

// ChildRole is played as a child thread: a role of the same workflow, or another workflow.
type ChildRole struct {
	Role     string         `json:"role,omitempty"`
	Workflow Hash           `json:"workflow,omitempty"`
	Prompt   string         `json:"prompt,omitempty"`
	Inputs   map[string]any `json:"inputs,omitempty"`
	When     string         `json:"when,omitempty"` // JSONata; if false, there is no such child; version 3, for all only
}

// EachRole is a [ChildRole] for each item of a list.
type EachRole struct {
	Of string `json:"of"` // JSONata
	ChildRole
	Max int `json:"max,omitempty"` // maximum number of items; 0 means unlimited
}

// Parse is the format in which a command prints its role's data.
type Parse string

// Ways of parsing output.
const (
	ParseJSON        Parse = "json"
	ParseFrontmatter Parse = "frontmatter" // YAML frontmatter, as in an agent's answer
)

// Player is the kind of player of a role.
type Player string

// Players of roles.
const (
	PlayedByAgent    Player = "agent"
	PlayedByCommand  Player = "command"
	PlayedByPerson   Player = "person"
	PlayedByWorkflow Player = "workflow"
	PlayedByAll      Player = "all"
	PlayedByEach     Player = "each"
	PlayedByCompute  Player = "compute" // the answer is computed from an expression
)

// Player returns who plays the role.
func (r Role) Player() Player {
	if all := r.players(); len(all) > 0 {
		return all[0]
	}
	return PlayedByAgent
}

// HasChildren reports whether child threads play the role. A computed role counts as having zero children,
// because its answer is computed in the same way as a join.
func (r Role) HasChildren() bool {
	switch r.Player() {
	case PlayedByWorkflow, PlayedByAll, PlayedByEach, PlayedByCompute:
		return true
	}
	return false
}

// Uses returns the hashes of the other workflows that a workflow runs, sorted and without duplicates.
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
		{len(r.Run) > 0, PlayedByCommand}, {r.Script != "", PlayedByCommand}, {r.Person, PlayedByPerson},
		{r.Workflow != "", PlayedByWorkflow}, {len(r.All) > 0, PlayedByAll}, {r.Each != nil, PlayedByEach},
		{r.Compute != "", PlayedByCompute},
	} {
		if p.named {
			all = append(all, p.Player)
		}
	}
	return all
}

// grown reports whether a workflow requires version 2.
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

// validateNew validates the additions of version 2.
func (r Role) validateNew() error {
	if len(r.players()) > 1 {
		return fmt.Errorf("it cannot have both %s and %s", r.players()[0], r.players()[1])
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
	if r.OnFailure != "" && r.OnFailure != ContinueOnFailure {
		err = errors.Join(err, fmt.Errorf("onFailure %q is unknown", r.OnFailure))
	}
	return errors.Join(err, wantNatural("parallel", r.Parallel), wantNatural("timeoutMs", int(min(r.TimeoutMs, 1))))
}

// third reports whether a role requires version 3.
func (r Role) third() bool {
	for _, c := range r.All {
		if c.When != "" {
			return true
		}
	}
	return r.Script+r.Compute+string(r.OnFailure) != "" || len(r.Shell)+len(r.Env) > 0 || r.Each != nil && r.Each.When != ""
}

// wantOptional returns an error if h is neither valid nor empty.
func wantOptional(field string, h Hash) error {
	if h == "" {
		return nil
	}
	return wantHash(field, h)
}

// MaxName is the maximum length of a workflow's name, in characters.
const MaxName = 100

// WorkflowNameRule describes valid names of workflows.
const WorkflowNameRule = "letters, digits, '.', '_' and '-', starting with a letter or digit"

// WorkflowNameProblem returns what is wrong with the name of a workflow, in words that follow the name, or
// "". A valid name cannot be mistaken for a path, a hash or an option, is safe in a shell, and is a valid
// file name on all systems.
func WorkflowNameProblem(name string) string {
	switch {
	case name == "":
		return "is blank"
	case utf8.RuneCountInString(name) > MaxName:
		return "is longer than 100 characters"
	case !isPlainName(name):
		return "has characters that are not allowed"
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return "could be mistaken for a file"
	case Hash(name).Valid():
		return "could be mistaken for a hash"
	}
	return ""
}

func isPlainName(name string) bool {
	for i, c := range name {
		switch {
		case c == unicode.ReplacementChar:
			return false
		case unicode.IsLetter(c), unicode.IsDigit(c), unicode.IsMark(c) && i > 0:
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

//go:embed reference.md
var reference string

// Reference returns the short command reference that every role receives. It is Markdown with a single fenced
// block, in which each line is a read-only command that starts with "uwf" and ends with a comment after "#".
func Reference() string { return reference }
