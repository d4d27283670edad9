package htmlpage

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
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

// failedTry is one that failed before a step.
type failedTry struct {
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
	Tries                 []failedTry
	Refused               []string      // why answers were refused
	Children              *Children     // of a server; nil: nobody has played a part of it
	Gone                  string        // what stands in place of turns that were redacted, or how the agent ended
	Changes               []Change      // of the answer, since the role's last one
	Files                 *changedFiles // nil: none are kept, or none are shown
	Turns                 []Turn
	AllTurns, FirstTurn   int    // how many there are; the first that is shown, from 1
	Problem               string // what cannot be read of it
	Link, Earlier, Latter string // of a server; "": none
	Open                  bool
	Parts                 iter.Seq[part] // nil: nobody has played a part of it, or none is shown
	MoreParts             int            // that are not shown
	Within                string         // before its number, in the names of places on the page
}

// part is a thread that has played a part of a step, read as it is shown.
type part struct {
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

func stepOf(ctx context.Context, t *thread.Thread, r cas.Reader, s thread.Step, now time.Time, b Bounds,
	within string) Step {
	shown := Step{
		Within: within, Hash: s.Hash, Number: s.Index + 1, Role: Line(s.Role, Longest), Agent: Line(s.Agent, Longest),
		Took: render.Duration(sumOf(s).DurationMs), Tokens: tokensText(s.Usage), Cost: costText(s.Usage), Usage: usageText(s),
		Ended: WhenOf(&s.CompletedAtMs, now), Prompt: TextOf(promptquote.Plain(s.EdgePrompt), b.Text),
	}
	if n := len(s.Children); n > 1 {
		shown.Agent = fmt.Sprintf("%d children", n)
	} else if n == 1 {
		shown.Agent = "1 child"
	}
	for _, try := range s.Tries {
		shown.Tries = append(shown.Tries, failedTry{Agent: Line(try.Agent, Longest), Error: TextOf(try.Error, b.Text)})
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

func partsOf(ctx context.Context, r cas.Reader, children []protocol.ChildEnded, now time.Time, b Bounds,
	within string) iter.Seq[part] {
	b.Skip = 0
	return func(yield func(part) bool) {
		for i, c := range children {
			if ctx.Err() != nil || !yield(partOf(ctx, r, c, now, b, fmt.Sprintf("%s%d-", within, i+1))) {
				return
			}
		}
	}
}

// partSteps is how many steps of a part are shown, the newest.
const partSteps = 100

func partOf(ctx context.Context, r cas.Reader, c protocol.ChildEnded, now time.Time, b Bounds, within string) part {
	p := part{Key: Line(c.Key, Longest), Status: string(c.Status)}
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
	shown := Turn{Number: t.Index + 1, Who: Line(string(t.Role), Longest), Content: TextOf(t.Content, most),
		Reasoning: TextOf(t.Reasoning, most)}
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

// Children are threads that play a role together: counted, and those by name that matter
// most now.
type Children struct {
	ID     string // of their place on the page
	Counts []childCount
	Shown  []Child
	More   int
	Lost   string // why some of them have no page
}

// childCount is how many of them stand so.
type childCount struct {
	N            int
	Status, Mood string
}

// Child is one of them.
type Child struct {
	Key, Name, Status, Mood, Link, Doing string // Name: as people read it
	Thread, Told                         string // its id, and the beginning of its task
	Below                                *Children
}

// Few reports whether they need not be folded.
func (k *Children) Few() bool { return len(k.Shown)+k.More <= childrenUnfolded }

// ChildrenOf counts children, and names at most so many; nil: there are none. link is the
// page of a thread, "" if it has none.
func ChildrenOf(id string, all []protocol.ChildOutput, most int, link func(thread string) string) *Children {
	if len(all) == 0 {
		return nil
	}
	k := &Children{ID: id}
	for _, c := range view.ByUrgency(all) {
		status, mood := string(c.Status), Mood(c.Status)
		if n := len(k.Counts); n > 0 && k.Counts[n-1].Status == status {
			k.Counts[n-1].N++
		} else {
			k.Counts = append(k.Counts, childCount{N: 1, Status: status, Mood: mood})
		}
		if len(k.Shown) == most {
			k.More++
			continue
		}
		k.Shown = append(k.Shown, Child{Thread: c.Thread, Key: c.Key, Name: Line(cmp.Or(c.Label, c.Key), Longest),
			Status: status, Mood: mood, Link: link(c.Thread)})
	}
	return k
}

// Tell adds the beginning of what each was told, unless its name says it.
func (k *Children) Tell(ctx context.Context, r cas.Reader, heads map[string]protocol.Hash) {
	if k == nil {
		return
	}
	for i := range k.Shown {
		t, err := thread.Open(ctx, r, heads[k.Shown[i].Thread])
		if err != nil {
			continue // its own page says why
		}
		if told := Line(protocol.TitleOf(t.Task()), Longest); told != k.Shown[i].Name {
			k.Shown[i].Told = told
		}
	}
}

// Thread is where a thread stands, to show.
type Thread struct {
	ID, Title, Workflow string
	Status, Mood        string
	Role                string // next, or at work
	Started             When
	Cwd, Artifacts      string
	Task                Text
	Steps               int
	Took, Tokens, Cost  string
	Asks                Text   // what a person is asked
	Asker               string // for which role
	Problem             Text   // why it does not go on
	Command             string // what to type next
	Actions             []protocol.Action
	Words               Text // the closing words
	ForkOf              string
	Graph               template.URL // the picture: data, or the server's
	GraphProblem        string
	WorkflowLink        string // of a server; "": none
}

// ThreadOf reads where a thread stands. An error is one of [view.Thread].
func ThreadOf(ctx context.Context, e *engine.Engine, id string, b Bounds) (Thread, protocol.ThreadShow, error) {
	at, err := view.Thread(ctx, e, id, false)
	if err != nil {
		return Thread{}, at, err
	}
	can, err := e.Reader.Actions(ctx, id)
	if err != nil {
		return Thread{}, at, err
	}
	t := Thread{
		ID: id, Title: Line(at.Title, LongestTitle), Workflow: Line(at.WorkflowName, Longest), Status: string(at.Status),
		Mood:    Mood(at.Status),
		Started: WhenOf(at.StartedAt, e.Reader.Env.Now()), Command: Line(view.CommandLine(can), LongestCommand),
		Words: TextOf(at.Message, b.Text), Actions: can,
	}
	if t.Title == "" {
		t.Title = "Thread " + id
	}
	if at.CurrentRole != "" {
		t.Role = Line(string(at.CurrentRole), Longest)
	}
	if at.ForkedFrom != nil {
		t.ForkOf = Line(string(at.ForkedFrom.Step), Longest)
	}
	switch {
	case at.Question != nil:
		t.Asks, t.Asker = TextOf(at.Question.Text, b.Text), Line(at.Question.Role, Longest)
	case at.SuspendMessage != "":
		t.Problem = TextOf(string(at.SuspendMessage), b.Text)
	case at.Error != nil:
		t.Problem = TextOf(at.Error.Message, b.Text)
	}
	if chain, err := thread.Open(ctx, e.Reader.Store, at.Head); err == nil {
		t.Task, t.Steps = TextOf(chain.Task(), b.Text), chain.Len()
		t.Cwd = Line(chain.Start.Cwd, LongestTitle)
	}
	if sum := at.Totals; sum != nil && sum.Steps+sum.FailedTries > 0 {
		t.Took, t.Tokens, t.Cost = render.Duration(sum.DurationMs), view.Tokens(*sum), view.Cost(*sum)
	}
	if held := at.Artifacts; held != nil {
		t.Artifacts = view.Artifacts(*held)
	}
	return t, at, nil
}

// LongestCommand is how many characters of a command are shown.
const LongestCommand = 1000

// Graph draws the way of a thread as SVG.
func Graph(ctx context.Context, e *engine.Engine, id string) (string, error) {
	trace, err := view.TraceOf(ctx, e, id)
	if err != nil {
		return "", err
	}
	return trace.Graph(view.Note).SVG()
}

// asData is a picture within a page. In a picture, a browser runs no script and loads
// nothing.
func asData(svg string) template.URL {
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg)))
}

// chainOf reads the newest steps of a chain, at most so many, and returns them oldest
// first; before is the head of the chain that is left, "" if it is read to its start.
// What was read before an error is returned with it.
func chainOf(ctx context.Context, t *thread.Thread, most int) (steps []thread.Step, before protocol.Hash, err error) {
	for s, readErr := range t.Steps(ctx) {
		if readErr != nil {
			err = readErr
			break
		}
		steps = append(steps, s)
		if len(steps) == most {
			if s.Prev != nil {
				before = *s.Prev
			}
			break
		}
	}
	slices.Reverse(steps)
	return steps, before, err
}

// chain is some steps of a thread, one after the other.
type chain struct {
	Steps  []thread.Step // oldest first
	Before protocol.Hash // the head for those before them; "": there are none
	of     *thread.Thread
}

// ChainUpTo reads the steps of a chain up to a head, at most so many. What was read
// before an error is returned with it.
func ChainUpTo(ctx context.Context, e *engine.Engine, head protocol.Hash, most int) (c chain, err error) {
	if c.of, err = thread.Open(ctx, e.Reader.Store, head); err != nil {
		return c, err
	}
	c.Steps, c.Before, err = chainOf(ctx, c.of, most)
	return c, err
}

// Shown is what is to be shown of the steps.
func (c chain) Shown(ctx context.Context, e *engine.Engine, b Bounds) (shown []Step) {
	bars := barsOf(c.Steps)
	for i, s := range c.Steps {
		step := StepOf(ctx, c.of, e.Reader.Store, s, e.Reader.Env.Now(), b)
		step.Bar = bars[i]
		shown = append(shown, step)
	}
	return shown
}

// barsOf is how long steps took, in percent of the longest.
func barsOf(steps []thread.Step) []int {
	longest := int64(1)
	for _, s := range steps {
		longest = max(longest, sumOf(s).DurationMs)
	}
	bars := make([]int, len(steps))
	for i, s := range steps {
		bars[i] = int(max(sumOf(s).DurationMs, 0) * 100 / longest)
	}
	return bars
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return Line(line, LongestTitle)
}
