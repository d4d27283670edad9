package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
)

// record is what a person finds in the detail about a run: how it was set up and
// what the model was told, then each question with what became of it, then how
// it ended. The texts are nodes; the turns between them are the kit's.
type record struct {
	run   *runenv.Run
	texts []protocol.Hash
}

func (r *record) add(ctx context.Context, text string) error {
	h, err := r.run.Text(ctx, text)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.texts = append(r.texts, h)
	return nil
}

// begin tells how the run was set up, and all that the model is told which is no
// turn of this step.
func (r *record) begin(ctx context.Context, w *work, loop react.Loop, s *react.Session) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%s: "+format+"\n", append([]any{name}, args...)...)
	}
	line("agent", "%s", protocol.AgentName(w.kind.name))
	line("model", "%s (%s in config.yaml, provider %s)", w.endpoint.Model, w.endpoint.Alias, w.endpoint.Provider)
	line("endpoint", "%s%s%s", w.client.URL(), map[bool]string{true: ", streamed"}[w.endpoint.Stream],
		map[bool]string{true: ", told what to cache"}[w.endpoint.CacheControl])
	line("limits", "%s", limits(loop))
	if w.kind.tools {
		line("tools", "%s", strings.Join(names(w.tools), ", "))
		line("commands", "%s", w.commands)
		line("workspace", "%s; file tools cannot leave it", w.workspace.Dir())
	}
	if w.habits.told != "" {
		line("instructions", "%s", w.habits.told)
	}
	if loop.ReadOnly {
		line("only reading", "an answer is being corrected")
	}
	line("conversation", "%s, %d messages", s.ID, len(s.Messages))
	if old := len(s.Messages) - len(w.told); old > 0 {
		line("of them", "%d from before this run", old)
	}
	if w.req.Interrupted && !loop.ReadOnly {
		line("goes on", "where an earlier try of this step was interrupted; its turns come first")
	}
	for _, m := range w.told {
		fmt.Fprintf(&b, "\n--- %s ---\n%s\n", m.Role, m.Content)
	}
	return r.add(ctx, b.String())
}

// limits are those of a run, for a person.
func limits(l react.Loop) string {
	list := []string{fmt.Sprintf("%d replies", l.Turns)}
	if l.Budget.Tokens > 0 {
		list = append(list, fmt.Sprintf("%d tokens", l.Budget.Tokens))
	}
	if l.Budget.CostUSD > 0 {
		list = append(list, fmt.Sprintf("$%g", l.Budget.CostUSD))
	}
	if l.Budget.Time > 0 {
		list = append(list, protocol.Span(l.Budget.Time))
	}
	if l.Window > 0 {
		list = append(list, fmt.Sprintf("a window of %d tokens", l.Window))
	}
	return strings.Join(list, ", ")
}

// asked reports one question.
func (r *record) asked(ctx context.Context, a react.Asked) error {
	var b strings.Builder
	fmt.Fprintf(&b, "question %d: %d messages", a.Number, a.Messages)
	if a.Summary {
		b.WriteString(", for a summary of what is left out")
	}
	if a.Final {
		b.WriteString(", the last one")
	}
	if a.Room != "" {
		fmt.Fprintf(&b, "\nleft out before to make room: %s", a.Room)
	}
	for i, f := range a.Response.Failures {
		fmt.Fprintf(&b, "\ntry %d failed: %s", i+1, f.Reason)
		if f.Wait > 0 {
			fmt.Fprintf(&b, "; waited %s", f.Wait.Round(time.Millisecond))
		}
		if f.Usage.Turns > 0 {
			fmt.Fprintf(&b, "; %s", cost(f.Usage))
		}
	}
	took := a.Took.Round(time.Millisecond)
	if a.Err != nil {
		fmt.Fprintf(&b, "\nfailed after %s: %v\n", took, a.Err)
		return r.add(ctx, b.String())
	}
	fmt.Fprintf(&b, "\nreply after %s (%s): %s\n", took, a.Response.Finish, cost(a.Response.Usage))
	return r.add(ctx, b.String())
}

// cost is what a reply or a run cost.
func cost(u protocol.Usage) string {
	if !u.Counted() {
		s := "tokens unknown"
		if u.CostUSD != nil {
			s += fmt.Sprintf(", $%.4f", *u.CostUSD)
		}
		return s
	}
	s := fmt.Sprintf("%d tokens read, %d written", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens)
	if u.CacheReadTokens > 0 {
		s += fmt.Sprintf(", %d of those read from a cache", u.CacheReadTokens)
	}
	if u.CostUSD != nil {
		s += fmt.Sprintf(", $%.4f", *u.CostUSD)
	}
	return s
}

// end tells how the run ended.
func (r *record) end(ctx context.Context, a react.Answer, err error) error {
	how := outcomes[a.Outcome]
	if err != nil {
		how = "it failed: " + err.Error()
	}
	return r.add(ctx, fmt.Sprintf("end: %s\nin all: %d replies, %s\n", how, a.Bill.Parts, total(a.Bill)))
}

// total is what the replies of a run cost, as far as it is known.
func total(b protocol.Bill) string {
	switch {
	case b.Uncounted == 0 || b.Uncounted == b.Parts:
		return cost(b.AtLeast)
	}
	return fmt.Sprintf("at least %s; of %d of them the tokens are unknown", cost(b.AtLeast), b.Uncounted)
}

var outcomes = map[react.Outcome]string{
	react.Done: "the final answer was given", react.MaxTurns: "all replies are used up",
	react.MaxTokens: "the budget of tokens is used up", react.MaxCost: "the budget of cost is used up",
	react.MaxTime: "the time is up", react.Stuck: "too many calls in a row failed",
	react.Incomplete: "there was no acceptable final answer, in spite of reminders",
}

// writing shows a reply while the model writes it, at most once a second: each
// time costs a file.
func (w *work) writing(ctx context.Context) func(soFar func() llm.Message) {
	const pause = time.Second
	last := w.run.Env.Now()
	return func(soFar func() llm.Message) {
		now := w.run.Env.Now()
		if now.Sub(last) < pause {
			return
		}
		last = now
		m := soFar()
		if m.Content == "" && m.Reasoning == "" && len(m.ToolCalls) == 0 {
			return
		}
		turn := protocol.Turn{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning}
		for _, call := range m.ToolCalls {
			turn.ToolCalls = append(turn.ToolCalls, protocol.ToolCall{ID: call.ID, Name: call.Name, Args: call.Args})
		}
		// It only serves who watches: what breaks here breaks at the whole turn, too.
		_ = w.req.Writing(ctx, turn)
	}
}
