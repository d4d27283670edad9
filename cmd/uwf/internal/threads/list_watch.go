package threads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

// watchPause is how often a list is looked at.
const watchPause = time.Second

// listWatch shows a list that changes.
type listWatch interface {
	show(items []protocol.ThreadItem, now time.Time) error
}

// watchList looks at the list until it is interrupted.
func (a Commands) watchList(ctx context.Context, f view.Filter) error {
	var shown listWatch = &changeLines{w: a.Env.Stdout, json: a.Format(nil) == render.JSON, before: map[string]protocol.ThreadItem{}}
	if terminal.Is(a.Env.Stdout) && a.Format(nil) == render.Text {
		shown = &screen{w: a.Env.Stdout, size: func() (int, int) { return terminal.Size(a.Env.Stdout) }}
	}
	for {
		items, err := a.list(ctx, f)
		if err == nil {
			all := slices.Collect(items)
			if err = context.Cause(ctx); err == nil { // otherwise it is not all
				err = shown.show(all, a.Env.Now())
			}
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-time.After(watchPause):
				continue
			}
		}
		var signal *engine.SignalError
		if errors.As(err, &signal) { // seen enough is no mistake
			a.Status = app.Classify(err).Code
			return nil
		}
		return err
	}
}

// screen draws the list over what it drew before.
type screen struct {
	w     io.Writer
	size  func() (columns, lines int) // of the terminal; 0: unknown
	drawn int                         // lines
}

func (s *screen) show(items []protocol.ThreadItem, now time.Time) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s · %s\n", render.Count(len(items), "thread"), now.Format(time.TimeOnly))
	if err := listText(&text, slices.Values(items), now, false); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	columns, rows := s.size()
	if rows > 1 && len(lines) >= rows { // what scrolls away cannot be drawn over
		lines = append(lines[:rows-2], fmt.Sprintf("… %d more", len(lines)-(rows-2)))
	}
	var frame terminal.Painter
	if s.drawn > 0 {
		frame.Up(s.drawn)
	}
	for _, line := range lines {
		frame.Control(terminal.ClearLine)
		frame.Text(diagram.Cut(strings.TrimRight(line, " "), max(0, columns-1)) + "\n")
	}
	frame.Control(terminal.ClearBelow)
	s.drawn = len(lines)
	return frame.Draw(s.w)
}

// changeLines prints a line for each thread that has changed: at first all.
type changeLines struct {
	w      io.Writer
	json   bool
	before map[string]protocol.ThreadItem
}

func (c *changeLines) show(items []protocol.ThreadItem, now time.Time) error {
	listed := map[string]bool{}
	for i := len(items) - 1; i >= 0; i-- { // the newest stays last
		it := items[i]
		listed[it.Thread] = true
		if old, ok := c.before[it.Thread]; ok && reflect.DeepEqual(old, it) {
			continue
		}
		c.before[it.Thread] = it
		if err := c.print(it, now); err != nil {
			return err
		}
	}
	for id := range c.before {
		if listed[id] {
			continue
		}
		delete(c.before, id)
		if err := c.gone(id, now); err != nil {
			return err
		}
	}
	return nil
}

func (c *changeLines) print(it protocol.ThreadItem, now time.Time) error {
	if c.json {
		return json.NewEncoder(c.w).Encode(it)
	}
	words := []string{now.Format(time.TimeOnly), it.Thread, it.StatusDisplay}
	if it.WorkflowName != nil {
		words = append(words, plaintext.Line(*it.WorkflowName))
	}
	if it.CurrentRole != nil {
		words = append(words, plaintext.Line(*it.CurrentRole))
	}
	_, err := fmt.Fprintln(c.w, strings.Join(words, "  "))
	return err
}

// goneItem is a thread that is not in the list any more.
type goneItem struct {
	Thread string `json:"thread"`
	Listed bool   `json:"listed"` // always false
}

// gone reports a thread that is not in the list any more: it has ended, or has a
// status that was not asked for.
func (c *changeLines) gone(id string, now time.Time) error {
	if c.json {
		return json.NewEncoder(c.w).Encode(goneItem{Thread: id})
	}
	_, err := fmt.Fprintf(c.w, "%s  %s  not in the list any more\n", now.Format(time.TimeOnly), id)
	return err
}
