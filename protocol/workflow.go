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
	StartNode   = "$START"   // where a thread begins; the only node that is not a role
	EndNode     = "$END"     // target: the thread is completed
	SuspendNode = "$SUSPEND" // target: the thread waits for a person
	FailNode    = "$FAIL"    // target: the thread has failed, for good

	StatusKey     = "$status" // the output field that routes
	ErrorStatus   = "$error"  // the edge that is taken if a role could not be played
	DefaultStatus = "_"       // the edge that is always taken
	StartAlias    = "new"     // accepted at $START instead of "_"
	ResumeStatus  = "resume"  // optional edge of $START: where a completed thread goes on

	PromptVariable = "$prompt" // the thread's prompt, in every template
	InputsVariable = "$inputs" // the thread's inputs, in every template and condition
	StepsVariable  = "$steps"  // the newest answer of each role, in every template and condition
	BodyVariable   = "$body"   // the text below the last answer's block, in the same places

	ArtifactsVariable = "$artifacts" // the directory of [EnvArtifacts], in prompts and the words of commands
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

	// Language is [Language3] if the workflow says what only version 3 can, else 0.
	Language int `json:"language,omitempty"`
}

// Language3 marks a workflow that older programs must not run, since they would read its parts otherwise.
const Language3 = 3

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

	// Version 2. At most one of the first five is set, Script, or Compute; if none is, an agent plays
	// the role.
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

	// Version 3.
	Script    string            `json:"script,omitempty"`    // a command as one text, without templates
	Shell     []string          `json:"shell,omitempty"`     // the words before Script; nil: sh -e -c
	Env       map[string]string `json:"env,omitempty"`       // of Run and Script, a template in each value
	Compute   string            `json:"compute,omitempty"`   // JSONata: the answer
	OnFailure OnFailure         `json:"onFailure,omitempty"` // of children
}

// Command are the words of a role that is a command, as they are stored; nil: it is none. Those of a script
// are no templates.
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

// OnFailure says what a child that fails means for its role.
type OnFailure string

// ContinueOnFailure: its failure is a result, beside those of the others.
const ContinueOnFailure OnFailure = "continue"

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
	When     string         `json:"when,omitempty"` // JSONata; false: it has no part. Version 3, of all only
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
	PlayedByCompute  Player = "compute" // nobody: its answer is an expression
)

// Player tells who plays the role.
func (r Role) Player() Player {
	if all := r.players(); len(all) > 0 {
		return all[0]
	}
	return PlayedByAgent
}

// HasChildren reports whether the role is played by threads of their own, or by none: its answer
// is computed as that of children is joined.
func (r Role) HasChildren() bool {
	switch r.Player() {
	case PlayedByWorkflow, PlayedByAll, PlayedByEach, PlayedByCompute:
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
	if r.OnFailure != "" && r.OnFailure != ContinueOnFailure {
		err = errors.Join(err, fmt.Errorf("onFailure %q is unknown", r.OnFailure))
	}
	return errors.Join(err, wantNatural("parallel", r.Parallel), wantNatural("timeoutMs", int(min(r.TimeoutMs, 1))))
}

// third reports whether a role says what only version 3 can.
func (r Role) third() bool {
	for _, c := range r.All {
		if c.When != "" {
			return true
		}
	}
	return r.Script+r.Compute+string(r.OnFailure) != "" || len(r.Shell)+len(r.Env) > 0 || r.Each != nil && r.Each.When != ""
}

// wantOptional refuses what is neither a hash nor absent.
func wantOptional(field string, h Hash) error {
	if h == "" {
		return nil
	}
	return wantHash(field, h)
}

// MaxName is the longest name of a workflow, in characters.
const MaxName = 100

// WorkflowNameRule is what a workflow's name is made of.
const WorkflowNameRule = "letters, digits, '.', '_' and '-', beginning with a letter or digit"

// WorkflowNameProblem says what is wrong with the name of a workflow, as words that
// follow the name; "" if nothing is. A good one is what the command line can tell
// from a path, a hash or an option, what no shell would run, and what is a file's
// name everywhere.
func WorkflowNameProblem(name string) string {
	switch {
	case name == "":
		return "is blank"
	case utf8.RuneCountInString(name) > MaxName:
		return "is longer than 100 characters"
	case !isPlainName(name):
		return "has characters that a workflow's name cannot have"
	case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return "would be taken for a file"
	case Hash(name).Valid():
		return "would be taken for a hash"
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

// Reference is the short command reference that every role is given: Markdown,
// commands that only read, each on a line of its own in the one fenced block,
// "uwf" first and a comment after "#".
func Reference() string { return reference }
