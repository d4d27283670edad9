package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a *app) threadWatchCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "watch", ArgsUsage: "<thread>", Usage: "follow a thread until nothing works on it any more",
		Description: "On a terminal each tool is told as it is called, and a line counts up; elsewhere there is a line for\n" +
			"each step that begins or ends. With --format json each event is a line of JSON. To stop watching, press Ctrl-C:\n" +
			"the thread goes on. Exit status 6 if it then waits for a person; if the last try failed, that of the failure.",
	}, a.threadWatch)
}

func (a *app) threadWatch(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	asJSON := a.flags.format == string(render.JSON)
	view := engine.Progress(a.view(a.env.Stdout))
	if asJSON {
		view = &eventStream{w: a.env.Stdout}
	}
	w, err := newWatcher(ctx, e, id, view)
	if err != nil {
		return err
	}
	if err := w.watch(ctx); err != nil {
		return a.unwatched(w, err)
	}
	out, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	a.endsAs(out)
	a.sayNext(out)
	if asJSON {
		return json.NewEncoder(a.env.Stdout).Encode(watchEvent{Event: "end", Thread: id, Output: &out})
	}
	_, err = io.WriteString(a.env.Stdout, "thread "+id+": "+statusText(out)+"\n")
	return err
}

// unwatched ends watching early. A person who has seen enough has made no mistake:
// the exit status says that it was cut short, and that is all.
func (a *app) unwatched(w *watcher, err error) error {
	var signal *engine.SignalError
	if !errors.As(err, &signal) {
		return err
	}
	if v, ok := w.view.(*view); ok {
		v.leave()
	}
	a.status = classify(err).Code
	return nil
}

// leave takes the counting line back.
func (v *view) leave() {
	if v.stop != nil {
		close(v.stop)
		v.ended.Wait()
		v.stop = nil
	}
	if v.live {
		var frame terminal.Painter
		frame.Control(terminal.ClearLine)
		_ = frame.Draw(v.w) // the terminal is being left
	}
}

// watchEvent is a line of the stream of thread watch.
type watchEvent struct {
	Event     string               `json:"event"` // step-started, turn, writing, step-ended, end
	Thread    string               `json:"thread"`
	Number    int                  `json:"number,omitempty"` // of the step, from 1
	Role      string               `json:"role,omitempty"`
	Agent     string               `json:"agent,omitempty"`
	StartedAt int64                `json:"startedAt,omitempty"` // ms
	Turn      *protocol.Turn       `json:"turn,omitempty"`
	Output    *protocol.StepOutput `json:"output,omitempty"`
	Error     string               `json:"error,omitempty"`
}

// eventStream is a view for programs.
type eventStream struct{ w io.Writer }

func (s *eventStream) put(name string, i engine.StepInfo, e watchEvent) {
	e.Event, e.Thread, e.Number, e.Role, e.Agent, e.StartedAt = name, i.Thread, i.Number, i.Role, i.Agent, i.Started.UnixMilli()
	_ = json.NewEncoder(s.w).Encode(e) // whoever reads it may have left
}

// StepStarted implements engine.Progress.
func (s *eventStream) StepStarted(i engine.StepInfo) { s.put("step-started", i, watchEvent{}) }

// Turn implements engine.Progress.
func (s *eventStream) Turn(i engine.StepInfo, t protocol.Turn) {
	s.put("turn", i, watchEvent{Turn: &t})
}

// Writing implements engine.Progress.
func (s *eventStream) Writing(i engine.StepInfo, t protocol.Turn) {
	s.put("writing", i, watchEvent{Turn: &t})
}

// StepEnded implements engine.Progress.
func (s *eventStream) StepEnded(i engine.StepInfo, out protocol.StepOutput, err error) {
	e := watchEvent{Output: &out}
	if err != nil {
		e.Error = err.Error()
	}
	s.put("step-ended", i, e)
}
