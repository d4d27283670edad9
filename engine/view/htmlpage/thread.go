package htmlpage

import (
	"context"
	"encoding/base64"
	"html/template"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// Thread is where a thread stands, to show.
type Thread struct {
	ID, Title, Workflow string
	Status, Mood        string
	Role                string // next, or at work
	Started             When
	Cwd                 string
	Task                Text
	Steps               int
	Took, Tokens, Cost  string
	Asks                Text   // what a person is asked
	Asker               string // for which role
	Problem             Text   // why it does not go on
	Command             string // what to type next
	Words               Text   // the closing words
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
	t := Thread{
		ID: id, Title: Line(at.Title, LongestTitle), Workflow: Line(at.WorkflowName, Longest), Status: string(at.Status), Mood: Mood(at.Status),
		Started: WhenOf(at.StartedAt, e.Env.Now()), Command: Line(view.Command(at.StepOutput), LongestCommand), Words: TextOf(at.Message, b.Text),
	}
	if t.Title == "" {
		t.Title = "Thread " + id
	}
	if at.CurrentRole != nil {
		t.Role = Line(*at.CurrentRole, Longest)
	}
	if at.ForkedFrom != nil {
		t.ForkOf = Line(string(at.ForkedFrom.Step), Longest)
	}
	switch {
	case at.Question != nil:
		t.Asks, t.Asker = TextOf(at.Question.Text, b.Text), Line(at.Question.Role, Longest)
	case at.SuspendMessage != nil:
		t.Problem = TextOf(*at.SuspendMessage, b.Text)
	case at.Error != nil:
		t.Problem = TextOf(at.Error.Message, b.Text)
	}
	if chain, err := thread.Open(ctx, e.Store, at.Head); err == nil {
		t.Task, t.Steps = TextOf(chain.Task(), b.Text), chain.Len()
		t.Cwd = Line(chain.Start.Cwd, LongestTitle)
	}
	if sum := at.Totals; sum != nil && sum.Steps+sum.FailedTries > 0 {
		t.Took, t.Tokens, t.Cost = render.Duration(sum.DurationMs), view.Tokens(*sum), view.Cost(*sum)
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

// Chain is some steps of a thread, one after the other.
type Chain struct {
	Steps  []thread.Step // oldest first
	Before protocol.Hash // the head for those before them; "": there are none
	of     *thread.Thread
}

// ChainUpTo reads the steps of a chain up to a head, at most so many. What was read
// before an error is returned with it.
func ChainUpTo(ctx context.Context, e *engine.Engine, head protocol.Hash, most int) (c Chain, err error) {
	if c.of, err = thread.Open(ctx, e.Store, head); err != nil {
		return c, err
	}
	c.Steps, c.Before, err = chainOf(ctx, c.of, most)
	return c, err
}

// Shown is what is to be shown of the steps.
func (c Chain) Shown(ctx context.Context, e *engine.Engine, b Bounds) (shown []Step) {
	bars := barsOf(c.Steps)
	for i, s := range c.Steps {
		step := StepOf(ctx, c.of, e.Store, s, e.Env.Now(), b)
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
