package protocol

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Payload is the content of a node of one of our kinds. Validate agrees with
// the JSON Schema of its type, so that a typed payload needs no schema library.
// Version is the lowest version of the kind that can say it.
type Payload interface {
	Kind() Kind
	Version() int
	Validate() error
}

// Start is the first node of a thread. It holds no thread id, so that equal
// starts share one node and a fork shares everything.
type Start struct {
	Workflow Hash   `json:"workflow"`
	Prompt   string `json:"prompt"`
	Cwd      string `json:"cwd"` // absolute

	// Version 2.
	Inputs    map[string]any `json:"inputs,omitempty"`
	Child     *Child         `json:"child,omitempty"`
	Workspace *Workspace     `json:"workspace,omitempty"`
}

// Step is one finished cycle: moderator, agent, extract.
type Step struct {
	Start Hash  `json:"start"`
	Prev  *Hash `json:"prev"` // nil at the first step
	// Index is Prev's plus one; the first step has 0. A fork goes on from its
	// parent's.
	Index int `json:"index"`
	// Visits counts the steps of each role up to and including this one, so
	// that a limit needs no walk.
	Visits map[string]int `json:"visits"`
	// LimitBase is the index at which a limit was last lifted; steps count
	// against the limit from there.
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
	Root     string       `json:"root,omitempty"` // of the workspace, absolute
	Files    *Files       `json:"files,omitempty"`
	Children []ChildEnded `json:"children,omitempty"`
	Tries    []Try        `json:"tries,omitempty"` // that failed before
	Memo     *Memo        `json:"memo,omitempty"`

	// Version 3. The role could not be played: Output is a text node that says why, and Tries are all
	// that were made.
	Error *StepFailure `json:"error,omitempty"`
}

// StepFailure marks a step that is a failure, which a workflow leads on from.
type StepFailure struct {
	Code Code `json:"code"`
}

// FailureAnswer is what a step that is a failure has answered. why is the text of its output.
func (s Step) FailureAnswer(why string) map[string]any {
	return map[string]any{StatusKey: ErrorStatus, "error": why, "code": string(s.Error.Code), "tries": len(s.Tries)}
}

// ExtractedBy tells how an agent's answer became data.
type ExtractedBy string

// The ways to become data.
const (
	ByFrontmatter ExtractedBy = "frontmatter" // a YAML block at the start of the answer
	ByValue       ExtractedBy = "value"       // the agent returned structured data
	ByLLM         ExtractedBy = "llm"         // a model read the answer; may be wrong
)

// Detail is what happened inside the agent during one step.
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
	By string `json:"by,omitempty"` // who answered for a person
}

// Outcomes of a run that a budget ended before its work was done, the first words of
// [Detail].Outcome.
const (
	OutcomeMaxTurns  = "max_turns"
	OutcomeMaxTokens = "max_tokens"
	OutcomeMaxCost   = "max_cost"
	OutcomeMaxTime   = "max_time"
	// OutcomeOfRun stands behind one of them if it was no budget of the step, but what
	// was left of the whole run's.
	OutcomeOfRun = "of the run"
)

// UsedUp is the budget that ended the work, "" if none did, and whether it was the whole
// run's.
func (d Detail) UsedUp() (outcome string, ofRun bool) {
	parts := strings.Split(d.Outcome, "; ")
	switch parts[0] {
	case OutcomeMaxTurns, OutcomeMaxTokens, OutcomeMaxCost, OutcomeMaxTime:
		return parts[0], len(parts) > 1 && parts[1] == OutcomeOfRun
	}
	return "", false
}

// Capture tells how much of the agent's work the detail holds.
type Capture string

// How much a detail holds.
const (
	CaptureTurns Capture = "turns" // every message and tool result
	CaptureFinal Capture = "final" // the answer only
)

// Turn is one message: from the model, to it, or a tool's result.
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
	Refused *Refused `json:"refused,omitempty"` // the answer before this turn, which asks for another
}

// TurnRole is who speaks in a turn.
type TurnRole string

// Who speaks.
const (
	TurnSystem    TurnRole = "system"
	TurnUser      TurnRole = "user"
	TurnAssistant TurnRole = "assistant"
	TurnTool      TurnRole = "tool"
)

// ToolCall is a model's request to run a tool. Args is the JSON value that the
// model sent, or the raw text if it was not JSON.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args any    `json:"args"`
}

// Text is a string on its own: a prompt, a raw answer.
type Text string

// Suspend is the output of a role that waits for a person.
type Suspend struct {
	Status string `json:"$status"` // always $SUSPEND
	Reason string `json:"reason"`
}

// NewSuspend returns the output that suspends a thread for the given reason.
func NewSuspend(reason string) Suspend { return Suspend{Status: SuspendNode, Reason: reason} }

// The largest figures of a [Usage]. A number that somebody else tells may be
// anything; sums stop here instead of turning negative or infinite.
const (
	MaxFigure  int64   = 1<<53 - 1 // what a JSON number holds exactly for everyone
	MaxCostUSD float64 = 1e12
)

// Usage is what one run cost. Tokens are counted once: InputTokens are those
// not read from a cache. An unknown cost is nil, never zero; unknown tokens are no
// usage, or none at all beside a cost that is known (see [Usage.Counted]).
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

// Add returns the sum of two runs; it stops at the largest figures. A cost that
// is known on one side only is kept: the sum is then a lower bound.
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

// addUp adds two figures without an overflow.
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

// Validate reports what the JSON Schema of the kind would refuse.
func (s Start) Validate() error {
	return errors.Join(wantHash("start: workflow", s.Workflow), s.Child.validate(), s.Workspace.validate())
}

// Validate reports what the JSON Schema of the kind would refuse.
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

// Validate reports what the JSON Schema of the kind would refuse.
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

// Validate reports what the JSON Schema of the kind would refuse.
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

// Validate reports what the JSON Schema of the kind would refuse.
func (s Suspend) Validate() error {
	if s.Status != SuspendNode {
		return fmt.Errorf("suspend: %s must be %q", StatusKey, SuspendNode)
	}
	return nil
}

// Plausible reports figures that no run can have: negative ones, and those
// beyond the largest. It is for what somebody else tells, before it is stored.
// Nil is plausible.
func (u *Usage) Plausible() error {
	if u == nil {
		return nil
	}
	for _, n := range u.figures() {
		if n > MaxFigure {
			return fmt.Errorf("usage: %d is too large", n)
		}
	}
	if c := u.CostUSD; c != nil && !(*c <= MaxCostUSD) { // NaN, too
		return fmt.Errorf("usage: costUsd %g is too large", *c)
	}
	return u.validate()
}

// validate reports negative figures.
func (u *Usage) validate() error {
	if u == nil {
		return nil
	}
	for _, n := range u.figures() {
		if n < 0 {
			return errors.New("usage: figures cannot be negative")
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

// What version 2 of the kinds adds.

// Child says whose child a thread is.
type Child struct {
	Of      Hash   `json:"of"` // the parent's head when it was made
	Role    string `json:"role"`
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
}

// InWorktree is the mode of a workspace that is a git worktree of the thread's own.
const InWorktree = "worktree"

// Workspace is where the agents of a thread work. Tree is the state of the files that it
// begins with.
type Workspace struct {
	Mode string `json:"mode"`
	Base Tree   `json:"base,omitempty"`
	Tree Tree   `json:"tree,omitempty"`
}

// Tree is the state of files: "sha1:" or "sha256:", and the hash of a git tree.
type Tree string

// Valid reports whether t has the form of a tree.
func (t Tree) Valid() bool {
	function, sum, _ := strings.Cut(string(t), ":")
	size := map[string]int{"sha1": 40, "sha256": 64}[function]
	return size > 0 && len(sum) == size && strings.Trim(sum, "0123456789abcdef") == ""
}

// Function is the hash function of the tree.
func (t Tree) Function() string {
	function, _, _ := strings.Cut(string(t), ":")
	return function
}

// Files is the state of the files after a step.
type Files struct {
	Tree   Tree     `json:"tree"`
	Before Tree     `json:"before,omitempty"` // if a person has changed them since the step before
	Left   []string `json:"left,omitempty"`   // paths that were left out
	Note   string   `json:"note,omitempty"`
}

// ChildEnded is a child whose result a step has joined.
type ChildEnded struct {
	Key    string `json:"key"`
	Head   Hash   `json:"head"`
	Status Status `json:"status"`
	Usage  *Usage `json:"usage,omitempty"`
}

// Try is a failed one at a step.
type Try struct {
	Agent  string `json:"agent"`
	Error  string `json:"error"`
	Detail *Hash  `json:"detail,omitempty"`
	Usage  *Usage `json:"usage,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// Memo says that the output was taken over from an equal step.
type Memo struct {
	Key string `json:"key"`
	Of  *Hash  `json:"of,omitempty"`
}

// Refused is why an answer was not accepted, and how often of how many times another one has
// been asked for.
type Refused struct {
	Why    string `json:"why"`
	Number int    `json:"number"` // from 1
	Of     int    `json:"of"`
}

// String is the text for people. Why comes from an agent's answer, so it needs cleaning.
func (r Refused) String() string {
	const most = 300 // it has a line
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

// version is that of a payload that has or has not what version 2 adds.
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

// validateNew checks what version 2 adds.
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

// wantTree refuses what is neither a tree nor absent.
func wantTree(field string, t Tree) error {
	if t == "" || t.Valid() {
		return nil
	}
	return fmt.Errorf("%s: %q is not a tree", field, t)
}

// Kind is one of the node kinds that uwf itself writes. It grows by versions, of
// which each has a schema of its own and adds optional fields to the one before. A
// reader of any kind but workflow takes a newer version, too, and ignores what it
// does not know.
type Kind string

// The node kinds.
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

// Versions is how many versions of the kind this program knows: each has its file in schema/.
func (k Kind) Versions() int {
	for v := 2; ; v++ {
		f, err := schemas.Open("schema/" + Type{k, v}.String() + ".json")
		if err != nil {
			return v - 1
		}
		_ = f.Close() // it is in memory
	}
}

// Type is a version of a kind: what the type of a node stands for. The hash of its
// schema differs from store to store (it depends on the hash function), so a type
// is known by the title of its schema and never by a constant hash.
type Type struct {
	Kind    Kind
	Version int // from 1
}

// TypeOf is the type under which a payload is stored: the lowest version that can
// say it, so that what says nothing new keeps its hash.
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

// Foundation lists the types whose schemas a store is made with. It is frozen: who
// added to it would take for durable what older stores do not have, and two
// programs would write different bundles of the same thread.
func Foundation() []Type {
	return []Type{{KindText, 1}, {KindSuspend, 1}, {KindTurn, 1}, {KindDetail, 1}, {KindWorkflow, 1}, {KindStart, 1},
		{KindStep, 1}}
}

// TitlePrefix begins the titles of the schemas of our kinds, and of no others.
const TitlePrefix = "@uwf/"

// String is the name of the type: "step", or "step.2".
func (t Type) String() string {
	if t.Version == 1 {
		return string(t.Kind)
	}
	return string(t.Kind) + "." + strconv.Itoa(t.Version)
}

// Title is the title of the type's schema, such as "@uwf/step.2".
func (t Type) Title() string { return TitlePrefix + t.String() }

// Known reports whether this program knows the version.
func (t Type) Known() bool { return t.Version >= 1 && t.Version <= t.Kind.Versions() }

// ParseType reads the name of a type, also of a version that this program does not
// know.
func ParseType(name string) (Type, bool) {
	kind, number, versioned := strings.Cut(name, ".")
	t := Type{Kind(kind), 1}
	if versioned {
		t.Version, _ = strconv.Atoi(number)
	}
	return t, slices.Contains(Kinds(), t.Kind) && t.Version >= 1 && t.String() == name
}

// SchemaJSON is the JSON Schema of a type. It panics for a type that is not in
// [Types]: such a value is a programming error.
func SchemaJSON(t Type) []byte {
	b, err := schemas.ReadFile("schema/" + t.String() + ".json")
	if err != nil {
		panic(fmt.Sprintf("protocol: no schema for %s", t))
	}
	return b
}

// MetaSchemaJSON is the schema that every schema node satisfies. Its node is
// its own type. It equals the original's, so that a store of the original's
// (hash function xxh64) has the same meta-schema hash.
func MetaSchemaJSON() []byte {
	b, err := schemas.ReadFile("schema/meta.json")
	if err != nil {
		panic("protocol: no meta-schema")
	}
	return b
}
