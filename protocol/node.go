package protocol

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Payload is the content of a node of one of our kinds. Validate agrees with the JSON Schema of its type, so
// a typed payload needs no schema library. Version is the lowest version of the kind that can represent the
// payload.
type Payload interface {
	Kind() Kind
	Version() int
	Validate() error
}

// Start is the first node of a thread. It contains no thread ID, so equal starts share a node, and a fork
// shares all nodes.
type Start struct {
	Workflow Hash   `json:"workflow"`
	Prompt   string `json:"prompt"`
	Cwd      string `json:"cwd"` // absolute

	// Version 2.
	Inputs    map[string]any `json:"inputs,omitempty"`
	Child     *Child         `json:"child,omitempty"`
	Workspace *Workspace     `json:"workspace,omitempty"`
}

// Step is the result of one cycle of moderator, agent and extract.
type Step struct {
	Start Hash  `json:"start"`
	Prev  *Hash `json:"prev"` // nil in the first step
	// Index is the index of Prev plus one; the first step has 0. A fork continues the numbering of its
	// original.
	Index int `json:"index"`
	// Visits counts the steps of each role up to and including this one, so that limits can be checked
	// without reading the chain.
	Visits map[string]int `json:"visits"`
	// LimitBase is the index at which a limit was last lifted. Step limits count from there.
	LimitBase     int         `json:"limitBase"`
	Role          string      `json:"role"`
	Output        Hash        `json:"output"` // its type is the role's schema, or the suspend kind
	Detail        Hash        `json:"detail"`
	Agent         string      `json:"agent"` // uwf-<name>
	EdgePrompt    string      `json:"edgePrompt"`
	Cwd           string      `json:"cwd"`
	StartedAtMs   int64       `json:"startedAtMs"`
	CompletedAtMs int64       `json:"completedAtMs"`
	SessionID     string      `json:"sessionId"`
	Prompt        *Hash       `json:"assembledPrompt,omitempty"` // text node
	ExtractedBy   ExtractedBy `json:"extractedBy"`
	Usage         *Usage      `json:"usage,omitempty"`

	// Version 2.
	Root     string       `json:"root,omitempty"` // absolute root of the workspace
	Files    *Files       `json:"files,omitempty"`
	Children []ChildEnded `json:"children,omitempty"`
	Tries    []Try        `json:"tries,omitempty"` // failed tries before the step
	Memo     *Memo        `json:"memo,omitempty"`

	// Version 3. Set if the role could not be played. Output is then a text node with the reason, and Tries
	// contains all tries.
	Error *StepFailure `json:"error,omitempty"`
}

// StepFailure marks a step that records a failure, which the workflow handles.
type StepFailure struct {
	Code Code `json:"code"`
}

// FailureAnswer returns the answer of a step that records a failure. why is the text of its output.
func (s Step) FailureAnswer(why string) map[string]any {
	return map[string]any{StatusKey: ErrorStatus, "error": why, "code": string(s.Error.Code), "tries": len(s.Tries)}
}

// ExtractedBy is the way in which an agent's answer was converted to data.
type ExtractedBy string

// Ways of extracting data.
const (
	ByFrontmatter ExtractedBy = "frontmatter" // a YAML block at the start of the answer
	ByValue       ExtractedBy = "value"       // the agent returned structured data
	ByLLM         ExtractedBy = "llm"         // a model extracted it; may be wrong
)

// Detail records what happened inside the agent during one step.
type Detail struct {
	SessionID    string  `json:"sessionId"`
	Model        string  `json:"model,omitempty"`
	AgentVersion string  `json:"agentVersion,omitempty"`
	Capture      Capture `json:"capture"`
	Turns        []Hash  `json:"turns"` // never nil when stored
	Requests     []Hash  `json:"requests,omitempty"`
	Outcome      string  `json:"outcome,omitempty"`
	DurationMs   int64   `json:"durationMs"`

	// Version 2.
	By string `json:"by,omitempty"` // the person who answered
}

// Outcomes of a run that a limit ended early. They are the first words of [Detail].Outcome.
const (
	OutcomeMaxTurns  = "max_turns"
	OutcomeMaxTokens = "max_tokens"
	OutcomeMaxCost   = "max_cost"
	OutcomeMaxTime   = "max_time"
	// OutcomeOfRun follows one of them if the limit was not the step's own, but the remaining budget of the
	// whole run.
	OutcomeOfRun = "of the run"
)

// UsedUp returns the limit that ended the work early, or "", and whether it was the limit of the whole run.
func (d Detail) UsedUp() (outcome string, ofRun bool) {
	parts := strings.Split(d.Outcome, "; ")
	switch parts[0] {
	case OutcomeMaxTurns, OutcomeMaxTokens, OutcomeMaxCost, OutcomeMaxTime:
		return parts[0], len(parts) > 1 && parts[1] == OutcomeOfRun
	}
	return "", false
}

// Capture is the amount of the agent's work that the detail contains.
type Capture string

// Values of Capture.
const (
	CaptureTurns Capture = "turns" // every message and tool result
	CaptureFinal Capture = "final" // the answer only
)

// Turn is one message: from the model, to it, or the result of a tool.
type Turn struct {
	Index      int        `json:"index"`
	Role       TurnRole   `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []ToolCall `json:"toolCalls,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
	Reasoning  string     `json:"reasoning,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`
	AtMs       int64      `json:"atMs"`

	// Version 2.
	Refused *Refused `json:"refused,omitempty"` // the rejected answer before this turn, which asks for another one
}

// TurnRole is the author of a turn.
type TurnRole string

// Authors of turns.
const (
	TurnSystem    TurnRole = "system"
	TurnUser      TurnRole = "user"
	TurnAssistant TurnRole = "assistant"
	TurnTool      TurnRole = "tool"
)

// ToolCall is a model's request to run a tool. Args is the JSON value that the model sent, or the raw text if
// that was not JSON.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args any    `json:"args"`
}

// Text is a plain string: a prompt, or a raw answer.
type Text string

// Suspend is the output of a role that waits for a person.
type Suspend struct {
	Status string `json:"$status"` // always $SUSPEND
	Reason string `json:"reason"`
}

// NewSuspend returns the output that suspends a thread for the given reason.
func NewSuspend(reason string) Suspend { return Suspend{Status: SuspendNode, Reason: reason} }

// Maximum values of a [Usage]. External numbers can be arbitrary; sums are capped here instead of becoming
// negative or infinite.
const (
	MaxFigure  int64   = 1<<53 - 1 // largest integer that every JSON parser represents exactly
	MaxCostUSD float64 = 1e12
)

// Usage is the cost of one run. Each token is counted once: InputTokens excludes those read from a cache. An
// unknown cost is nil, never zero. If the tokens are unknown, there is no usage, or all token counts are zero
// next to a known cost (see [Usage.Counted]).
type Usage struct {
	Turns            int      `json:"turns"`
	InputTokens      int64    `json:"inputTokens"`
	CacheReadTokens  int64    `json:"cacheReadTokens"`
	CacheWriteTokens int64    `json:"cacheWriteTokens"`
	OutputTokens     int64    `json:"outputTokens"`
	ReasoningTokens  int64    `json:"reasoningTokens"`
	CostUSD          *float64 `json:"costUsd"`
	DurationMs       int64    `json:"durationMs"`
}

// Add returns the sum of two usages, capped at the maximum values. A cost that is known for one of them only
// is kept, so the sum is a lower bound.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		Turns:            int(addUp(int64(u.Turns), int64(v.Turns))),
		InputTokens:      addUp(u.InputTokens, v.InputTokens),
		CacheReadTokens:  addUp(u.CacheReadTokens, v.CacheReadTokens),
		CacheWriteTokens: addUp(u.CacheWriteTokens, v.CacheWriteTokens),
		OutputTokens:     addUp(u.OutputTokens, v.OutputTokens),
		ReasoningTokens:  addUp(u.ReasoningTokens, v.ReasoningTokens),
		DurationMs:       addUp(u.DurationMs, v.DurationMs),
		CostUSD:          u.CostUSD,
	}
	switch {
	case sum.CostUSD == nil:
		sum.CostUSD = v.CostUSD
	case v.CostUSD != nil:
		c := min(RoundUSD(*u.CostUSD+*v.CostUSD), MaxCostUSD)
		sum.CostUSD = &c
	}
	return sum
}

// addUp adds two values without overflow.
func addUp(a, b int64) int64 {
	if a > 0 && b > MaxFigure-a {
		return MaxFigure
	}
	return a + b
}

// Kind implements [Payload].
func (Workflow) Kind() Kind { return KindWorkflow }

// Version implements [Payload].
func (w Workflow) Version() int {
	v := version(w.grown())
	if w.Language != 0 {
		v = 3
	}
	if w.Limits != nil {
		v = max(v, w.Limits.version())
	}
	return v
}

// Kind implements [Payload].
func (Start) Kind() Kind { return KindStart }

// Version implements [Payload].
func (s Start) Version() int {
	return version(len(s.Inputs) > 0 || s.Child != nil || s.Workspace != nil)
}

// Kind implements [Payload].
func (Step) Kind() Kind { return KindStep }

// Version implements [Payload].
func (s Step) Version() int {
	if s.Error != nil {
		return 3
	}
	return version(s.Root != "" || s.Files != nil || len(s.Children)+len(s.Tries) > 0 || s.Memo != nil)
}

// Kind implements [Payload].
func (Detail) Kind() Kind { return KindDetail }

// Version implements [Payload].
func (d Detail) Version() int { return version(d.By != "") }

// Kind implements [Payload].
func (Turn) Kind() Kind { return KindTurn }

// Version implements [Payload].
func (t Turn) Version() int { return version(t.Refused != nil) }

// Kind implements [Payload].
func (Text) Kind() Kind { return KindText }

// Version implements [Payload].
func (Text) Version() int { return 1 }

// Kind implements [Payload].
func (Suspend) Kind() Kind { return KindSuspend }

// Version implements [Payload].
func (Suspend) Version() int { return 1 }

// Validate returns an error if the JSON Schema of the kind rejects the payload.
func (s Start) Validate() error {
	return errors.Join(wantHash("start: workflow", s.Workflow), s.Child.validate(), s.Workspace.validate())
}

// Validate returns an error if the JSON Schema of the kind rejects the payload.
func (s Step) Validate() error {
	err := errors.Join(
		wantHash("step: start", s.Start), wantRef("step: prev", s.Prev),
		wantHash("step: output", s.Output), wantHash("step: detail", s.Detail),
		wantRef("step: assembledPrompt", s.Prompt),
		wantNatural("step: index", s.Index), wantNatural("step: limitBase", s.LimitBase),
	)
	if s.Visits == nil {
		err = errors.Join(err, errors.New("step: visits is required"))
	}
	for role, n := range s.Visits {
		err = errors.Join(err, wantNatural("step: visits of "+role, n))
	}
	switch s.ExtractedBy {
	case ByFrontmatter, ByValue, ByLLM:
	default:
		err = errors.Join(err, fmt.Errorf("step: extractedBy %q is unknown", s.ExtractedBy))
	}
	return errors.Join(err, s.Usage.validate(), s.validateNew())
}

// Validate returns an error if the JSON Schema of the kind rejects the payload.
func (d Detail) Validate() error {
	var err error
	if d.Turns == nil {
		err = errors.New("detail: turns must be a list")
	}
	for _, h := range d.Turns {
		err = errors.Join(err, wantHash("detail: turn", h))
	}
	for _, h := range d.Requests {
		err = errors.Join(err, wantHash("detail: request", h))
	}
	if d.Capture != CaptureTurns && d.Capture != CaptureFinal {
		err = errors.Join(err, fmt.Errorf("detail: capture %q is unknown", d.Capture))
	}
	return err
}

// Validate returns an error if the JSON Schema of the kind rejects the payload.
func (t Turn) Validate() error {
	err := wantNatural("turn: index", t.Index)
	switch t.Role {
	case TurnSystem, TurnUser, TurnAssistant, TurnTool:
	default:
		err = errors.Join(err, fmt.Errorf("turn: role %q is unknown", t.Role))
	}
	return errors.Join(err, t.Usage.validate(), t.Refused.validate())
}

// Validate accepts every text.
func (Text) Validate() error { return nil }

// Validate returns an error if the JSON Schema of the kind rejects the payload.
func (s Suspend) Validate() error {
	if s.Status != SuspendNode {
		return fmt.Errorf("suspend: %s must be %q", StatusKey, SuspendNode)
	}
	return nil
}

// Plausible returns an error for values that no run can have: negative ones, and those above the maximum. Use
// it for external values before they are stored. Nil is plausible.
func (u *Usage) Plausible() error {
	if u == nil {
		return nil
	}
	for _, n := range u.figures() {
		if n > MaxFigure {
			return fmt.Errorf("usage: %d is too large", n)
		}
	}
	if c := u.CostUSD; c != nil && !(*c <= MaxCostUSD) { // also rejects NaN
		return fmt.Errorf("usage: costUsd %g is too large", *c)
	}
	return u.validate()
}

// validate returns an error for negative values.
func (u *Usage) validate() error {
	if u == nil {
		return nil
	}
	for _, n := range u.figures() {
		if n < 0 {
			return errors.New("usage: numbers cannot be negative")
		}
	}
	if u.CostUSD != nil && *u.CostUSD < 0 {
		return errors.New("usage: costUsd cannot be negative")
	}
	return nil
}

func (u *Usage) figures() []int64 {
	return []int64{int64(u.Turns), u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens,
		u.ReasoningTokens, u.DurationMs}
}

func wantHash(field string, h Hash) error {
	if h.Valid() {
		return nil
	}
	return fmt.Errorf("%s: %q is not a hash", field, h)
}

func wantRef(field string, h *Hash) error {
	if h == nil {
		return nil
	}
	return wantHash(field, *h)
}

func wantNatural(field string, n int) error {
	if n >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %d is negative", field, n)
}

// Additions of version 2 of the kinds.

// Child identifies the parent of a child thread.
type Child struct {
	Of      Hash   `json:"of"` // the parent's head when the child was created
	Role    string `json:"role"`
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
}

// InWorktree is the mode of a workspace that is the thread's own git worktree.
const InWorktree = "worktree"

// Workspace is the workspace of a thread's agents. Tree is the snapshot of its initial files.
type Workspace struct {
	Mode string `json:"mode"`
	Base Tree   `json:"base,omitempty"`
	Tree Tree   `json:"tree,omitempty"`
}

// Tree identifies a snapshot of files: "sha1:" or "sha256:", followed by the hash of a git tree.
type Tree string

// Valid reports whether t has a valid form.
func (t Tree) Valid() bool {
	function, sum, _ := strings.Cut(string(t), ":")
	size := map[string]int{"sha1": 40, "sha256": 64}[function]
	return size > 0 && len(sum) == size && strings.Trim(sum, "0123456789abcdef") == ""
}

// Function returns the hash function of the tree.
func (t Tree) Function() string {
	function, _, _ := strings.Cut(string(t), ":")
	return function
}

// Files is the snapshot after a step.
type Files struct {
	Tree   Tree     `json:"tree"`
	Before Tree     `json:"before,omitempty"` // set if a person changed the files after the previous step
	Left   []string `json:"left,omitempty"`   // omitted paths
	Note   string   `json:"note,omitempty"`
}

// ChildEnded is a child whose result a step has joined.
type ChildEnded struct {
	Key    string `json:"key"`
	Head   Hash   `json:"head"`
	Status Status `json:"status"`
	Usage  *Usage `json:"usage,omitempty"`
}

// Try is a failed try of a step.
type Try struct {
	Agent  string `json:"agent"`
	Error  string `json:"error"`
	Detail *Hash  `json:"detail,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// Memo means that the output was copied from an equal step.
type Memo struct {
	Key string `json:"key"`
	Of  *Hash  `json:"of,omitempty"`
}

// Refused is why an answer was rejected, with the number of this request for another answer and their
// maximum.
type Refused struct {
	Why    string `json:"why"`
	Number int    `json:"number"` // starts at 1
	Of     int    `json:"of"`
}

// String returns the text for display. Why comes from an agent's answer, so it is cleaned.
func (r Refused) String() string {
	const most = 300 // it is shown on one line
	why := strings.Join(strings.Fields(r.Why), " ")
	if runes := []rune(why); len(runes) > most {
		why = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("answer refused: %s; asked again (%d of %d)", why, r.Number, r.Of)
}

func (r *Refused) validate() error {
	if r == nil {
		return nil
	}
	return errors.Join(wantNatural("turn: refused", r.Number), wantNatural("turn: refused of", r.Of))
}

// version returns 2 if the payload uses additions of version 2, else 1.
func version(second bool) int {
	if second {
		return 2
	}
	return 1
}

func (c *Child) validate() error {
	if c == nil {
		return nil
	}
	return errors.Join(wantHash("start: child", c.Of), wantNatural("start: attempt", c.Attempt))
}

func (w *Workspace) validate() error {
	if w == nil {
		return nil
	}
	return errors.Join(wantTree("start: base", w.Base), wantTree("start: tree", w.Tree))
}

// validateNew validates the additions of version 2.
func (s Step) validateNew() error {
	var err error
	if f := s.Files; f != nil {
		if !f.Tree.Valid() {
			err = fmt.Errorf("step: files: %q is not a tree", f.Tree)
		}
		err = errors.Join(err, wantTree("step: files before", f.Before))
	}
	for _, c := range s.Children {
		err = errors.Join(err, wantHash("step: child "+c.Key, c.Head), c.Usage.validate())
	}
	for _, t := range s.Tries {
		err = errors.Join(err, wantRef("step: detail of a try", t.Detail), t.Usage.validate())
	}
	if s.Memo != nil {
		err = errors.Join(err, wantRef("step: memo", s.Memo.Of))
	}
	return err
}

// wantTree returns an error if t is neither valid nor empty.
func wantTree(field string, t Tree) error {
	if t == "" || t.Valid() {
		return nil
	}
	return fmt.Errorf("%s: %q is not a tree", field, t)
}

// Kind is one of the node kinds that uwf itself writes. Each version of a kind has its own schema, which adds
// optional fields to the one before. For all kinds except workflow, readers accept newer versions and ignore
// unknown fields.
type Kind string

// Node kinds.
const (
	KindWorkflow Kind = "workflow"
	KindStart    Kind = "start"
	KindStep     Kind = "step"
	KindDetail   Kind = "detail"
	KindTurn     Kind = "turn"
	KindText     Kind = "text"
	KindSuspend  Kind = "suspend"
)

//go:embed schema/*.json
var schemas embed.FS

// Kinds lists all kinds, referenced kinds before those that refer to them.
func Kinds() []Kind {
	return []Kind{KindText, KindSuspend, KindTurn, KindDetail, KindWorkflow, KindStart, KindStep}
}

// Versions returns how many versions of the kind this program knows. Each has a file in schema/.
func (k Kind) Versions() int {
	for v := 2; ; v++ {
		f, err := schemas.Open("schema/" + Type{k, v}.String() + ".json")
		if err != nil {
			return v - 1
		}
		_ = f.Close() // an embedded file cannot fail to close
	}
}

// Type is a version of a kind. The type hash of a node depends on the store's hash function, so a type is
// recognized by the title of its schema and never by a constant hash.
type Type struct {
	Kind    Kind
	Version int // starts at 1
}

// TypeOf returns the type under which a payload is stored: the lowest version that can represent it, so that
// payloads without new fields keep their hash.
func TypeOf(p Payload) Type { return Type{p.Kind(), p.Version()} }

// Types lists the types that this program knows.
func Types() (all []Type) {
	for _, k := range Kinds() {
		for v := range k.Versions() {
			all = append(all, Type{k, v + 1})
		}
	}
	return all
}

// Foundation lists the types whose schemas every store contains from its creation. It must never change: a
// program with a longer list would rely on schemas that older stores lack, and would write different bundles
// of the same thread.
func Foundation() []Type {
	return []Type{{KindText, 1}, {KindSuspend, 1}, {KindTurn, 1}, {KindDetail, 1}, {KindWorkflow, 1}, {KindStart, 1},
		{KindStep, 1}}
}

// TitlePrefix is the prefix of the titles of our kinds' schemas, and of no others.
const TitlePrefix = "@uwf/"

// String returns the name of the type: "step", or "step.2".
func (t Type) String() string {
	if t.Version == 1 {
		return string(t.Kind)
	}
	return string(t.Kind) + "." + strconv.Itoa(t.Version)
}

// Title returns the title of the type's schema, such as "@uwf/step.2".
func (t Type) Title() string { return TitlePrefix + t.String() }

// Known reports whether this program knows the version.
func (t Type) Known() bool { return t.Version >= 1 && t.Version <= t.Kind.Versions() }

// ParseType parses the name of a type. Versions unknown to this program are valid.
func ParseType(name string) (Type, bool) {
	kind, number, versioned := strings.Cut(name, ".")
	t := Type{Kind(kind), 1}
	if versioned {
		t.Version, _ = strconv.Atoi(number)
	}
	return t, slices.Contains(Kinds(), t.Kind) && t.Version >= 1 && t.String() == name
}

// SchemaJSON returns the JSON Schema of a type. It panics if the type is not in [Types], which is a
// programming error.
func SchemaJSON(t Type) []byte {
	b, err := schemas.ReadFile("schema/" + t.String() + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for %s", t))
	}
	return b
}

// MetaSchemaJSON returns the schema of all schema nodes. Its node is its own type. It equals the original
// uwf's, so a store of the original (hash function xxh64) has the same meta-schema hash.
func MetaSchemaJSON() []byte {
	b, err := schemas.ReadFile("schema/meta.json")
	if err != nil {
		panic("protocol: no meta-schema")
	}
	return b
}
