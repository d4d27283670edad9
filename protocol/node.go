package protocol

import (
	"errors"
	"fmt"
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
	return []int64{int64(u.Turns), u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens, u.ReasoningTokens, u.DurationMs}
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
