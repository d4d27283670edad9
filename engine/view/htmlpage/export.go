package htmlpage

import (
	"context"
	"html/template"
	"io"
	"iter"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
)

// What a file has at most.
const (
	exportSteps = 2000
	exportTurns = 500
	exportText  = 64 << 10
	exportParts = 1000 // of a step
	exportFiles = 100  // steps, the newest, with their files
)

// export is what the template of the file is made with.
type export struct {
	Thread
	Style   template.CSS
	Hash    string
	All     iter.Seq[Step]
	Time    *Timeline
	Omitted int    // steps that are left out, the oldest
	Lost    string // why steps before the first one cannot be read
	Made    When
}

// Export writes a thread as one HTML file that needs nothing else: graph, steps, turns,
// and what a role has changed of its answer since it last spoke. Steps are read while
// they are written. Of very long threads the newest steps are there, of long texts the
// beginning and the end, and the file says so. diffs are what steps have changed in the
// files, not only in which. Errors are those of reading where the thread stands, and of w.
func Export(ctx context.Context, w io.Writer, e *engine.Engine, id string, diffs bool) error {
	templates, err := Templates()
	if err != nil {
		return err
	}
	style, err := Style()
	if err != nil {
		return err
	}
	bounds := Bounds{Text: exportText, Turns: exportTurns, Parts: exportParts}
	about, at, err := ThreadOf(ctx, e, id, bounds)
	if err != nil {
		return err
	}
	now := e.Env.Now().UnixMilli()
	x := export{Thread: about, Style: template.CSS(style), Hash: hashOf(style), Made: WhenOf(&now, e.Env.Now())}
	if svg, err := Graph(ctx, e, id); err != nil {
		x.GraphProblem = firstLine(err)
	} else {
		x.Graph = asData(svg)
	}
	t, err := thread.Open(ctx, e.Store, at.Head)
	if err != nil { // all that is known is how it stands
		x.Lost = firstLine(err)
		x.All = func(func(Step) bool) {}
		return templates.ExecuteTemplate(w, "export", x)
	}
	steps, _, err := chainOf(ctx, t, exportSteps)
	if err != nil {
		x.Lost = firstLine(err)
	} else {
		x.Omitted = t.Len() - len(steps)
	}
	x.Time = TimelineOf(ctx, e, steps, Now{At: at})
	bars, said := barsOf(steps), map[string]string{}
	x.All = func(yield func(Step) bool) {
		for i, s := range steps {
			step := StepOf(ctx, t, e.Store, s, e.Env.Now(), bounds)
			step.Bar, step.Open = bars[i], i == len(steps)-1
			if i >= len(steps)-exportFiles {
				step.Files = FilesOf(ctx, e, s, diffs)
			}
			words := step.Answer.Body
			if step.Answer.Empty() {
				words = step.Data.Body
			}
			if before, spoke := said[s.Role]; spoke && before != words {
				step.Changes = changes(before, words)
			}
			said[s.Role] = words
			if ctx.Err() != nil || !yield(step) {
				return
			}
		}
	}
	if err := templates.ExecuteTemplate(w, "export", x); err != nil {
		return err
	}
	return context.Cause(ctx)
}
