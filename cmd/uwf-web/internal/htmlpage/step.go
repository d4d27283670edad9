package htmlpage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/picture"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/render"
)

// Bounds limit how much of a thread is displayed.
type Bounds struct {
	Text     int  // bytes per text
	Turns    int  // turns per step
	Skip     int  // turns to skip first
	Children int  // children per step
	Whole    bool // include the agent's full prompt

	within string // prefix of the step's number in element IDs
}

// Step is a finished step to display.
type Step struct {
	Hash                 protocol.Hash
	Number               int
	Role, Agent, By      string
	Status, Model        string
	Took, Tokens, Cost   string
	Ended                When
	Prompt, Data, Answer Text
	Fields               []datum // of the data, if it is an object
	Whole                Text    // the agent's full prompt; empty if not stored or not displayed
	Usage                string
	Tries                []named       // errors of failed tries before it, by agent
	Refused              []string      // why answers were rejected
	Children             *Children     // summary with links, on a server; nil if the step has no children
	Gone                 string        // text in place of redacted turns
	Changes              []Change      // differences from the role's previous answer
	Files                *ChangedFiles // nil if there is no snapshot or it is not displayed
	Turns                []Turn
	AllTurns, FirstTurn  int    // total number of turns, and the first one displayed, from 1
	Problem              string // what is unreadable
	Link, Earlier, Later string // pages of the step and of its other turns, on a server; "" if none
	Open                 bool
	EndedChildren        iter.Seq[endedChild] // the children with their steps; nil if none are displayed
	MoreChildren         int                  // number of children not displayed
	Within               string               // prefix of the step's number in element IDs
}

// endedChild is a child that a step has joined. Its steps are read when displayed.
type endedChild struct {
	Key, Status string
	Task        Text
	Steps       iter.Seq[Step]
	Problem     string // why it is partly unreadable
}

// Change is a line of a diff.
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

// IsTool reports whether the turn is the result of a tool.
func (t Turn) IsTool() bool { return t.Who == string(protocol.TurnTool) }

// Call is a tool call by a model.
type Call struct {
	Name string
	Args Text
}

// StepOf reads a step for display. Its Problem lists what is unreadable.
func StepOf(ctx context.Context, t *thread.Thread, r cas.Reader, s thread.Step, now time.Time, b Bounds) Step {
	shown := Step{
		Within: b.within, Hash: s.Hash, Number: s.Index + 1, Role: Line(s.Role, Longest), Agent: Line(s.Agent, Longest),
		Took: render.Duration(sumOf(s).DurationMs), Tokens: tokensText(s.Usage), Cost: costText(s.Usage), Usage: usageText(s),
		Ended: WhenOf(&s.CompletedAtMs, now), Prompt: TextOf(promptquote.Plain(s.EdgePrompt), b.Text),
	}
	if n := len(s.Children); n > 1 {
		shown.Agent = fmt.Sprintf("%d children", n)
	} else if n == 1 {
		shown.Agent = "1 child"
	}
	for _, try := range s.Tries {
		shown.Tries = append(shown.Tries, named{Name: Line(try.Agent, Longest), Text: TextOf(try.Error, b.Text)})
	}
	var problems error
	out, err := t.Shown(ctx, s)
	problems = errors.Join(problems, err)
	shown.Data, shown.Fields, shown.Status = ValueText(out.Value, b.Text), dataOf(out.Value, b.Text), Line(view.StatusOf(out.Value), Longest)
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
	if detail.By == "" && len(s.Children) == 0 { // answers of persons and joins consist of the data only
		shown.Answer = TextOf(withoutData(answer, out.Value), b.Text)
		if len(shown.Fields) == 1 && strings.TrimSpace(shown.Fields[0].Body) == strings.TrimSpace(shown.Answer.Body) {
			shown.Data, shown.Fields = Text{}, nil
		}
	}
	if b.Whole && s.Prompt != nil {
		whole, err := cas.Read[protocol.Text](ctx, r, *s.Prompt)
		if redacted, ok := cas.AsRedacted(err); ok {
			whole, err = protocol.Text(redacted.Mark()), nil
		}
		problems = errors.Join(problems, err)
		shown.Whole = TextOf(promptquote.Plain(string(whole)), b.Text)
	}
	first := min(max(b.Skip, 0), len(detail.Turns))
	shown.FirstTurn = first + 1
	for i, h := range detail.Turns[first:min(first+b.Turns, len(detail.Turns))] {
		shown.Turns = append(shown.Turns, TurnOf(ctx, r, h, first+i+1, b.Text))
	}
	if problems != nil {
		shown.Problem = TextOf(problems.Error(), b.Text).Body
	}
	if n := min(b.Children, len(s.Children)); n > 0 {
		shown.MoreChildren, b.Skip = len(s.Children)-n, 0
		within := fmt.Sprintf("%ss%d-", b.within, shown.Number)
		shown.EndedChildren = func(yield func(endedChild) bool) {
			for i, c := range s.Children[:n] {
				if b.within = fmt.Sprintf("%s%d-", within, i+1); ctx.Err() != nil || !yield(endedChildOf(ctx, r, c, now, b)) {
					return
				}
			}
		}
	}
	return shown
}

// shownChildSteps is the maximum number of steps displayed for a child, the newest ones.
const shownChildSteps = 100

func endedChildOf(ctx context.Context, r cas.Reader, c protocol.ChildEnded, now time.Time, b Bounds) endedChild {
	p := endedChild{Key: Line(c.Key, Longest), Status: string(c.Status)}
	t, err := thread.Open(ctx, r, c.Head)
	if err != nil {
		p.Problem = firstLine(err)
		return p
	}
	p.Task = TextOf(t.Task(), b.Text)
	steps, _, err := chainOf(ctx, t, shownChildSteps)
	if err != nil {
		p.Problem = firstLine(err)
	}
	p.Steps = func(yield func(Step) bool) {
		for _, s := range steps {
			if ctx.Err() != nil || !yield(StepOf(ctx, t, r, s, now, b)) {
				return
			}
		}
	}
	return p
}

// TurnOf reads a turn for display.
func TurnOf(ctx context.Context, r cas.Reader, h protocol.Hash, number, most int) Turn {
	turn, err := thread.ShownTurn(ctx, r, h)
	if err != nil {
		return Turn{Number: number, Error: TextOf(err.Error(), most).Body}
	}
	shown := ShowTurn(turn, most)
	shown.Number = number
	return shown
}

// ShowTurn returns a turn for display, finished or not.
func ShowTurn(t protocol.Turn, most int) Turn {
	shown := Turn{Number: t.Index + 1, Who: Line(string(t.Role), Longest), Content: TextOf(promptquote.Plain(t.Content), most),
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

// sumOf returns the cost of a step, including its failed tries and joined children.
func sumOf(s thread.Step) (sum protocol.Totals) {
	sum.Add(s.Step)
	return sum
}

// usageText formats everything known about a step's usage.
func usageText(s thread.Step) string {
	sum := sumOf(s)
	text := view.TokensRounded(sum) + " tokens"
	if sum.Usage.Counted() && sum.Usage.Tokens() == 0 {
		return "no model"
	} else if !sum.Usage.Counted() {
		text = "tokens unknown"
	} else if r := sum.Usage.ReasoningTokens; r > 0 {
		text += ", " + view.Thousands(r) + " of them to reason"
	}
	return strings.TrimSuffix(text+" · "+costText(s.Usage), " · ")
}

// Lines returns the differing lines of two texts, at most 500.
func Lines(before, after string) []Change {
	const most = 500
	var out []Change
	for _, line := range workflowdiff.Lines(before, after) {
		if len(out) == most {
			return append(out, Change{Mark: " ", Text: "[…]"})
		}
		out = append(out, Change{Mark: line[:1], Text: line[1:]})
	}
	return out
}

// Children summarizes the children of a role: their numbers by status, and the most urgent ones.
type Children struct {
	Counts []childCount
	Shown  []Child
	More   int
	Lost   string // why some of them have no page
}

// childCount is the number of children with a status.
type childCount struct {
	N            int
	Status, Mood string
}

// Child is a child to display.
type Child struct {
	Key, Name, Status, Mood, Link, Doing string // Name is for people; Doing is the current role
	Thread, Task                         string // ID, and the start of its task
	Below                                *Children
}

// ChildrenOf summarizes children and lists up to most of them; it returns nil if there are none. link returns
// the page of a thread, or "".
func ChildrenOf(all []protocol.ChildOutput, most int, link func(thread string) string) *Children {
	if len(all) == 0 {
		return nil
	}
	k := &Children{}
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

// Find returns the child with a key, or the zero value.
func (k *Children) Find(key string) (found Child) {
	if k != nil {
		if i := slices.IndexFunc(k.Shown, func(c Child) bool { return c.Key == key }); i >= 0 {
			found = k.Shown[i]
		}
	}
	return found
}

// AddTasks adds the start of each child's task, unless the name already shows it.
func (k *Children) AddTasks(ctx context.Context, r cas.Reader, heads map[string]protocol.Hash) {
	if k == nil {
		return
	}
	for i := range k.Shown {
		t, err := thread.Open(ctx, r, heads[k.Shown[i].Thread])
		if err != nil {
			continue // the child's own page reports the error
		}
		if task := Line(protocol.TitleOf(t.Task()), Longest); task != k.Shown[i].Name {
			k.Shown[i].Task = task
		}
	}
}

// Thread is the state of a thread to display.
type Thread struct {
	ID, Title, Workflow string
	Status, Mood        string
	Role                string // current or next role
	Started             When
	Cwd, Artifacts      string
	Task                Text
	Steps               int
	Took, Tokens, Cost  string
	Asks                Text   // question for a person
	Asker               string // role that asks
	Problem             Text   // why the thread is stuck
	Command             string // suggested command
	Actions             []protocol.Action
	Words               Text // the result of an ended thread
	ForkOf              string
	Graph               template.URL // data URL, or a URL of the server
	GraphProblem        string
	WorkflowLink        string // on a server; "" if none
}

// ThreadOf reads the state of a thread for display. Errors are those of [view.Thread] and [status.Reader.Actions].
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
		t.Took, t.Tokens, t.Cost = render.Duration(sum.DurationMs), view.TokensRounded(*sum), CostOf(*sum)
	}
	if held := at.Artifacts; held != nil {
		t.Artifacts = view.Artifacts(*held)
	}
	return t, at, nil
}

// LongestCommand is the maximum number of characters displayed of a command.
const LongestCommand = 1000

// Graph draws the path of a thread as SVG.
func Graph(ctx context.Context, e *engine.Engine, id string) (string, error) {
	trace, err := view.TraceOf(ctx, e, id)
	if err != nil {
		return "", err
	}
	return picture.SVG(trace.Graph(view.NoteRounded))
}

// chainOf reads the newest steps of a chain, up to most of them, and returns them oldest first. before is the
// head of the remaining chain, or "" if there is none. On an error, it returns what it has read.
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

// chain is the newest part of a thread's chain of steps.
type chain struct {
	Steps  []thread.Step // oldest first
	Before protocol.Hash // head for the earlier steps; "" if there are none
	of     *thread.Thread
}

// ChainUpTo reads up to most steps of a chain that ends at head. On an error, it returns what it has read.
func ChainUpTo(ctx context.Context, e *engine.Engine, head protocol.Hash, most int) (c chain, err error) {
	if c.of, err = thread.Open(ctx, e.Reader.Store, head); err != nil {
		return c, err
	}
	c.Steps, c.Before, err = chainOf(ctx, c.of, most)
	return c, err
}

// Shown returns the steps for display.
func (c chain) Shown(ctx context.Context, e *engine.Engine, b Bounds) (shown []Step) {
	for _, s := range c.Steps {
		shown = append(shown, StepOf(ctx, c.of, e.Reader.Store, s, e.Reader.Env.Now(), b))
	}
	return shown
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return Line(line, LongestTitle)
}
