package htmlpage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
	"github.com/united-workforce/uwf/util/render"
)

// Bounds are how much of a thread is shown.
type Bounds struct {
	Text  int  // bytes of a text
	Turns int  // of a step; 0: none
	Skip  int  // turns before them
	Parts int  // of a step that others have played together; 0: none
	Whole bool // with the prompt as the agent was given it
}

// Try is one that failed before a step.
type Try struct {
	Agent string
	Error Text
}

// Step is a finished step to show.
type Step struct {
	Hash                  protocol.Hash
	Number                int
	Role, Agent, By       string
	Status, Model         string
	Took, Tokens, Cost    string
	Ended                 When
	Bar                   int // percent of the longest step that is shown
	Prompt, Data, Answer  Text
	Whole                 Text // the prompt as the agent was given it; empty: it is not kept, or not shown
	Usage                 string
	Tries                 []Try
	Refused               []string // why answers were refused
	Kids                  *Kids    // of a server; nil: nobody has played a part of it
	Gone                  string   // what stands in place of turns that were redacted, or how the agent ended
	Changes               []Change // of the answer, since the role's last one
	Files                 *Files   // nil: none are kept, or none are shown
	Turns                 []Turn
	AllTurns, FirstTurn   int    // how many there are; the first that is shown, from 1
	Problem               string // what cannot be read of it
	Link, Earlier, Latter string // of a server; "": none
	Open                  bool
	Parts                 iter.Seq[Part] // nil: nobody has played a part of it, or none is shown
	MoreParts             int            // that are not shown
	Within                string         // before its number, in the names of places on the page
}

// Part is a thread that has played a part of a step, read as it is shown.
type Part struct {
	Key, Status string
	Task        Text
	Steps       iter.Seq[Step]
	Problem     string // why not all of it can be read
}

// Change is a line of a comparison.
type Change struct{ Mark, Text string }

// Turn is a message within a step.
type Turn struct {
	Number              int
	Who                 string
	Content, Reasoning  Text
	Calls               []Call
	Tokens, Cost, Error string
	Link                string
}

// Call is a tool that a model has asked for.
type Call struct {
	Name string
	Args Text
}

// StepOf reads what is to be shown of a step. What cannot be read is told in the step.
func StepOf(ctx context.Context, t *thread.Thread, r cas.Reader, s thread.Step, now time.Time, b Bounds) Step {
	return stepOf(ctx, t, r, s, now, b, "")
}

func stepOf(ctx context.Context, t *thread.Thread, r cas.Reader, s thread.Step, now time.Time, b Bounds, within string) Step {
	shown := Step{
		Within: within, Hash: s.Hash, Number: s.Index + 1, Role: Line(s.Role, Longest), Agent: Line(s.Agent, Longest),
		Took: render.Duration(sumOf(s).DurationMs), Tokens: tokensText(s.Usage), Cost: costText(s.Usage), Usage: usageText(s),
		Ended: WhenOf(&s.CompletedAtMs, now), Prompt: TextOf(fence.Plain(s.EdgePrompt), b.Text),
	}
	if n := len(s.Children); n > 1 {
		shown.Agent = fmt.Sprintf("%d children", n)
	} else if n == 1 {
		shown.Agent = "1 child"
	}
	for _, try := range s.Tries {
		shown.Tries = append(shown.Tries, Try{Agent: Line(try.Agent, Longest), Error: TextOf(try.Error, b.Text)})
	}
	var problems error
	out, err := t.Shown(ctx, s)
	problems = errors.Join(problems, err)
	shown.Data, shown.Status = ValueText(out.Value, b.Text), Line(view.StatusOf(out.Value), Longest)
	detail, err := thread.ShownDetail(ctx, r, s.Detail)
	problems = errors.Join(problems, err)
	shown.Model, shown.By, shown.AllTurns = Line(detail.Model, Longest), Line(detail.By, Longest), len(detail.Turns)
	for _, refused := range thread.Refused(ctx, r, s.Detail) {
		shown.Refused = append(shown.Refused, Line(refused.String(), LongestTitle))
	}
	if detail.Capture == "" { // it was redacted
		shown.Gone = Line(detail.Outcome, LongestTitle)
	}
	answer, err := thread.Content(ctx, r, s.Detail)
	problems = errors.Join(problems, err)
	if detail.By == "" && len(s.Children) == 0 { // a person's answer is the data, and so is what is joined
		shown.Answer = TextOf(answer, b.Text)
	}
	if b.Whole && s.Prompt != nil {
		whole, err := cas.Read[protocol.Text](ctx, r, *s.Prompt)
		if redacted, ok := cas.AsRedacted(err); ok {
			whole, err = protocol.Text(redacted.Mark()), nil
		}
		problems = errors.Join(problems, err)
		shown.Whole = TextOf(string(whole), b.Text)
	}
	first := min(max(b.Skip, 0), len(detail.Turns))
	shown.FirstTurn = first + 1
	for i, h := range detail.Turns[first:min(first+b.Turns, len(detail.Turns))] {
		shown.Turns = append(shown.Turns, turnOf(ctx, r, h, first+i+1, b.Text))
	}
	if problems != nil {
		shown.Problem = TextOf(problems.Error(), b.Text).Body
	}
	if n := min(b.Parts, len(s.Children)); n > 0 {
		within = fmt.Sprintf("%ss%d-", within, shown.Number)
		shown.Parts, shown.MoreParts = partsOf(ctx, r, s.Children[:n], now, b, within), len(s.Children)-n
	}
	return shown
}

func partsOf(ctx context.Context, r cas.Reader, children []protocol.ChildEnded, now time.Time, b Bounds, within string) iter.Seq[Part] {
	b.Skip = 0
	return func(yield func(Part) bool) {
		for i, c := range children {
			if ctx.Err() != nil || !yield(partOf(ctx, r, c, now, b, fmt.Sprintf("%s%d-", within, i+1))) {
				return
			}
		}
	}
}

// partSteps is how many steps of a part are shown, the newest.
const partSteps = 100

func partOf(ctx context.Context, r cas.Reader, c protocol.ChildEnded, now time.Time, b Bounds, within string) Part {
	p := Part{Key: Line(c.Key, Longest), Status: string(c.Status)}
	t, err := thread.Open(ctx, r, c.Head)
	if err != nil {
		p.Problem = firstLine(err)
		return p
	}
	p.Task = TextOf(t.Task(), b.Text)
	steps, _, err := chainOf(ctx, t, partSteps)
	if err != nil {
		p.Problem = firstLine(err)
	}
	p.Steps = func(yield func(Step) bool) {
		bars := barsOf(steps)
		for i, s := range steps {
			step := stepOf(ctx, t, r, s, now, b, within)
			step.Bar = bars[i]
			if ctx.Err() != nil || !yield(step) {
				return
			}
		}
	}
	return p
}

func turnOf(ctx context.Context, r cas.Reader, h protocol.Hash, number, most int) Turn {
	turn, err := thread.ShownTurn(ctx, r, h)
	if err != nil {
		return Turn{Number: number, Error: TextOf(err.Error(), most).Body}
	}
	shown := ShowTurn(turn, most)
	shown.Number = number
	return shown
}

// ShowTurn is a turn to show, finished or not.
func ShowTurn(t protocol.Turn, most int) Turn {
	shown := Turn{Number: t.Index + 1, Who: Line(string(t.Role), Longest), Content: TextOf(t.Content, most), Reasoning: TextOf(t.Reasoning, most)}
	if t.Refused != nil {
		shown.Who, shown.Content = "uwf", TextOf(t.Refused.String(), most)
	}
	for _, c := range t.ToolCalls {
		shown.Calls = append(shown.Calls, Call{Name: Line(c.Name, Longest), Args: ValueText(c.Args, most)})
	}
	if t.Usage != nil {
		shown.Tokens, shown.Cost = tokensText(t.Usage), costText(t.Usage)
	}
	return shown
}

// sumOf is what a step has cost, with the tries before it and the children that it has
// joined.
func sumOf(s thread.Step) (sum protocol.Totals) {
	sum.Add(s.Step)
	return sum
}

// usageText says all that is known of what a step has used.
func usageText(s thread.Step) string {
	sum := sumOf(s)
	text := view.Tokens(sum) + " tokens"
	if !sum.Usage.Counted() {
		text = "tokens unknown"
	} else if r := sum.Usage.ReasoningTokens; r > 0 {
		text += ", " + view.Thousands(r) + " of them to reason"
	}
	return text + " · " + costText(s.Usage)
}

// changes compares what a role has said with what it said before.
func changes(before, after string) []Change {
	const most = 200 // lines
	var out []Change
	for _, line := range workflowdiff.Lines(before, after) {
		if len(out) == most {
			return append(out, Change{Mark: " ", Text: "[…]"})
		}
		out = append(out, Change{Mark: line[:1], Text: line[1:]})
	}
	return out
}
