package threads

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadWatchCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "watch", ArgsUsage: "<thread>", Usage: "follow a thread until nothing works on it any more",
		Description: "On a terminal each tool is told as it is called, and a line counts up; elsewhere there is a line for\n" +
			"each step that begins or ends. With --format json each event is a line of JSON. To stop watching, press Ctrl-C:\n" +
			"the thread goes on. Exit status 6 if it then waits for a person; if the last try failed, that of the failure.",
	}, a.threadWatch)
}

func (a Commands) threadWatch(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	asJSON := a.Flags.Format == string(render.JSON)
	shown := a.Display(a.Env.Stdout)
	told := engine.Progress(shown)
	if asJSON {
		told = view.Listener(func(ev view.Event) { putEvent(a.Env.Stdout, ev) })
	}
	if err := view.Follow(ctx, e, id, told); err != nil {
		return a.unwatched(shown, err)
	}
	out, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		a.EndsAs(out)
		a.SayNext(out)
		return json.NewEncoder(a.Env.Stdout).Encode(watchEvent{Event: "end", Thread: id, Output: &out})
	}
	a.Flags.Format = string(render.Text)
	return a.Stands(app.OutcomeAt(ctx, e, out, nil), true, nil)
}

// unwatched ends watching early. A person who has seen enough has made no mistake:
// the exit status says that it was cut short, and that is all.
func (a Commands) unwatched(shown *app.Display, err error) error {
	var signal *engine.SignalError
	if !errors.As(err, &signal) {
		return err
	}
	if a.Flags.Format != string(render.JSON) {
		shown.Leave()
	}
	a.Status = app.Classify(err).Code
	return nil
}

// watchEvent is a line of the stream of thread watch.
type watchEvent struct {
	Event     string                 `json:"event"` // step-started, turn, writing, step-ended, children, end
	Thread    string                 `json:"thread"`
	Path      string                 `json:"path,omitempty"`   // of a child, from the thread that is watched
	Label     string                 `json:"label,omitempty"`  // the path with items in place of their keys
	Number    int                    `json:"number,omitempty"` // of the step, from 1
	Role      string                 `json:"role,omitempty"`
	Agent     string                 `json:"agent,omitempty"`
	StartedAt int64                  `json:"startedAt,omitempty"` // ms
	Turn      *protocol.Turn         `json:"turn,omitempty"`
	Output    *protocol.StepOutput   `json:"output,omitempty"`
	Children  []protocol.ChildOutput `json:"children,omitempty"`
	Error     string                 `json:"error,omitempty"`
}

// putEvent writes an event as a line.
func putEvent(w io.Writer, ev view.Event) {
	line := watchEvent{
		Event: string(ev.Kind), Thread: ev.Step.Thread, Path: ev.Step.Path, Label: ev.Step.Label, Number: ev.Step.Number, Role: ev.Step.Role, Agent: ev.Step.Agent,
		Turn: ev.Turn, Output: ev.Output, Children: ev.Children,
	}
	if ev.Kind != view.ChildrenAre {
		line.StartedAt = ev.Step.Started.UnixMilli()
	}
	if ev.Err != nil {
		line.Error = ev.Err.Error()
	}
	_ = json.NewEncoder(w).Encode(line) // whoever reads it may have left
}
