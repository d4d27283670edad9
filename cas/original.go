package cas

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Nodes of the original. A store with the hash function xxh64 can contain nodes written by the original, with
// its own types, which differ between versions. They keep their hashes, so they are converted when read.
// Their types are recognized by the titles of their schemas and by required fields.

// originalTitles maps the original's titles to our kinds.
var originalTitles = map[string]protocol.Kind{
	"Workflow":      protocol.KindWorkflow,
	"StartNode":     protocol.KindStart,
	"StepNode":      protocol.KindStep,
	"SuspendOutput": protocol.KindSuspend,
}

// originalFields lists the fields that a schema of the original must have to be recognized as a kind, because
// a user can give an output schema any title.
var originalFields = map[protocol.Kind][]string{
	protocol.KindWorkflow: {"name", "roles"},
	protocol.KindStart:    {"workflow", "prompt"},
	protocol.KindStep:     {"start", "prev", "role", "output", "detail"},
	protocol.KindSuspend:  {"$status", "reason"},
	protocol.KindDetail:   {"sessionId"},
	protocol.KindTurn:     {"role", "content"},
}

// originalKind returns the kind of the nodes of a schema. Each agent of the original has its own detail and
// turn types, recognized by their suffix.
func originalKind(schema any) protocol.Kind {
	s, _ := schema.(object)
	if len(s) == 1 && s["type"] == "string" {
		return protocol.KindText
	}
	title, _ := s["title"].(string)
	kind := originalTitles[title]
	switch {
	case strings.HasSuffix(title, "-detail"):
		kind = protocol.KindDetail
	case strings.HasSuffix(title, "-turn"):
		kind = protocol.KindTurn
	}
	properties, _ := s["properties"].(object)
	for _, field := range originalFields[kind] {
		if _, ok := properties[field]; !ok {
			return ""
		}
	}
	return kind
}

// OriginalStep converts a step written by the original; false if n isn't one. It leaves missing fields zero: the
// index, visits and limitBase, which package thread derives from the chain.
func OriginalStep(ctx context.Context, r Reader, n Node) (protocol.Step, bool, error) {
	kind, version, err := r.Kinds().Of(ctx, r, n.Type)
	if err != nil || kind != protocol.KindStep || version != 0 {
		return protocol.Step{}, false, err
	}
	var o originalStep
	if err := decodeInto(n.Payload, &o); err != nil {
		return protocol.Step{}, false, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	s := o.step()
	if err := s.Validate(); err != nil {
		return protocol.Step{}, false, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("not a step: %v", err)}
	}
	return s, true, nil
}

// asOriginal converts a node written by the original to our payload.
func asOriginal[P protocol.Payload](n Node) (P, error) {
	var zero P
	var form interface{ payload() protocol.Payload }
	switch zero.Kind() {
	case protocol.KindWorkflow:
		form = &originalWorkflow{}
	case protocol.KindDetail:
		form = &originalDetail{}
	case protocol.KindTurn:
		form = &originalTurn{}
	default:
		return decodeAs[P](n) // the forms are identical
	}
	if err := decodeInto(n.Payload, form); err != nil {
		return zero, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	p, _ := form.payload().(P)
	return p, check(n, p)
}

// originalWorkflow covers the Workflow node of all versions: a role's schema is in frontmatter, meta or
// outputSchema, and its description is one text or several.
type originalWorkflow struct {
	Name        string                        `json:"name"`
	Description string                        `json:"description"`
	Roles       map[string]originalRole       `json:"roles"`
	Conditions  map[string]protocol.Condition `json:"conditions"`
	Graph       map[string]protocol.GraphNode `json:"graph"`
}

type originalRole struct {
	Description   string   `json:"description"`
	Goal          string   `json:"goal"`
	Capabilities  []string `json:"capabilities"`
	Procedure     string   `json:"procedure"`
	Output        string   `json:"output"`
	ExtractPrompt string   `json:"extractPrompt"`

	Frontmatter  Hash `json:"frontmatter"`
	Meta         Hash `json:"meta"`
	OutputSchema Hash `json:"outputSchema"`

	SystemPrompt string `json:"systemPrompt"`
	Identity     string `json:"identity"`
	Prepare      string `json:"prepare"`
	Execute      string `json:"execute"`
	Report       string `json:"report"`
}

func (o *originalWorkflow) payload() protocol.Payload {
	w := protocol.Workflow{
		Name: o.Name, Description: o.Description, Conditions: o.Conditions, Graph: o.Graph,
		Roles: map[string]protocol.Role{},
	}
	for name, r := range o.Roles {
		w.Roles[name] = r.role()
	}
	return w
}

func (r originalRole) role() protocol.Role {
	out := protocol.Role{
		Description: r.Description, Capabilities: r.Capabilities, ExtractPrompt: r.ExtractPrompt,
		Goal:        cmp.Or(r.Goal, r.Identity, r.SystemPrompt),
		Procedure:   cmp.Or(r.Procedure, paragraphs(r.Prepare, r.Execute)),
		Output:      cmp.Or(r.Output, r.Report),
		Frontmatter: cmp.Or(r.Frontmatter, r.Meta, r.OutputSchema),
	}
	if out.Capabilities == nil {
		out.Capabilities = []string{}
	}
	return out
}

func paragraphs(texts ...string) string {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "\n\n")
}

// originalStep covers the StepNode of all versions. The oldest have neither times nor a directory.
type originalStep struct {
	Start           Hash           `json:"start"`
	Prev            *Hash          `json:"prev"`
	Role            string         `json:"role"`
	Output          Hash           `json:"output"`
	Detail          Hash           `json:"detail"`
	Agent           string         `json:"agent"`
	EdgePrompt      string         `json:"edgePrompt"`
	Cwd             string         `json:"cwd"`
	StartedAtMs     int64          `json:"startedAtMs"`
	CompletedAtMs   int64          `json:"completedAtMs"`
	AssembledPrompt *Hash          `json:"assembledPrompt"`
	Usage           *originalUsage `json:"usage"`
}

// originalUsage has seconds, and input tokens that include cached ones.
type originalUsage struct {
	Turns        int     `json:"turns"`
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	Duration     float64 `json:"duration"`
}

func (o originalStep) step() protocol.Step {
	s := protocol.Step{
		Start: o.Start, Prev: o.Prev, Visits: map[string]int{}, Role: o.Role, Output: o.Output, Detail: o.Detail,
		Agent: o.Agent, EdgePrompt: o.EdgePrompt, Cwd: o.Cwd, Prompt: o.AssembledPrompt,
		StartedAtMs: o.StartedAtMs, CompletedAtMs: o.CompletedAtMs, ExtractedBy: protocol.ByFrontmatter,
	}
	if u := o.Usage; u != nil {
		const msPerSecond = 1000
		s.Usage = &protocol.Usage{
			Turns: u.Turns, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
			DurationMs: int64(math.Round(u.Duration * msPerSecond)),
		}
	}
	return s
}

// originalDetail contains the fields common to the details of the original's agents. The mock agent's detail
// has no turns.
type originalDetail struct {
	SessionID  string  `json:"sessionId"`
	Model      string  `json:"model"`
	Duration   float64 `json:"duration"`   // ms
	DurationMs float64 `json:"durationMs"` // Claude Code
	Subtype    string  `json:"subtype"`
	Turns      []Hash  `json:"turns"`
}

func (o *originalDetail) payload() protocol.Payload {
	d := protocol.Detail{
		SessionID: o.SessionID, Model: o.Model, Outcome: o.Subtype, Turns: o.Turns,
		Capture: protocol.CaptureTurns, DurationMs: int64(math.Round(cmp.Or(o.DurationMs, o.Duration))),
	}
	if d.Turns == nil {
		d.Turns, d.Capture = []Hash{}, protocol.CaptureFinal
	}
	return d
}

// originalTurn covers the turns of all the original's agents.
type originalTurn struct {
	Index     int            `json:"index"`
	Role      string         `json:"role"`
	Content   string         `json:"content"`
	ToolCalls []originalCall `json:"toolCalls"`
	Reasoning string         `json:"reasoning"`
}

// originalCall has its arguments in args, in input (Claude Code) or, if an agent stored the endpoint's own
// form, in the text of a function.
type originalCall struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Args     any              `json:"args"`
	Input    any              `json:"input"`
	Function originalFunction `json:"function"`
}

type originalFunction struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}

func (o *originalTurn) payload() protocol.Payload {
	t := protocol.Turn{Index: o.Index, Role: protocol.TurnRole(o.Role), Content: o.Content, Reasoning: o.Reasoning}
	if o.Role == "tool_result" {
		t.Role = protocol.TurnTool
	}
	for _, c := range o.ToolCalls {
		call := protocol.ToolCall{ID: c.ID, Name: cmp.Or(c.Name, c.Function.Name), Args: c.Args}
		for _, args := range []any{c.Input, c.Function.Arguments} {
			if call.Args == nil {
				call.Args = args
			}
		}
		t.ToolCalls = append(t.ToolCalls, call)
	}
	return t
}
