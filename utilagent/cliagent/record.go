package cliagent

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// maxContent is how much of one text or result a turn holds; the part cut from its middle is
// in the run directory.
const maxContent = 1 << 20

// record makes turns of events. All that belongs to one message of the model is one turn,
// which is stored when it is complete.
type record struct {
	put func(context.Context, protocol.Turn) error

	answer   answer
	pending  protocol.Turn // without its texts
	content  text
	thought  text
	open     bool   // pending has begun
	pieces   bool   // its text is still coming in pieces
	id       string // of its message
	sub      bool
	messages int // of the main agent
	running  int // tools that have not returned
	notices  []string
	last     string // content of the last turn of the main agent with a text
}

// take takes an event.
func (r *record) take(ctx context.Context, e Event) error {
	switch e.Kind {
	case Text, Delta, Reasoning, Called:
		if !r.joins(e) {
			if err := r.flush(ctx); err != nil {
				return err
			}
			r.begin(e)
		}
		r.add(e)
	case Returned:
		return r.returned(ctx, e)
	case Break, Done:
		r.answer.pause()
		return r.flush(ctx)
	case Heard:
		if err := r.flush(ctx); err != nil {
			return err
		}
		return r.store(ctx, protocol.Turn{Role: protocol.TurnUser, Content: e.letter.Text}, false)
	case Notice:
		r.notices = append(r.notices, e.Text)
	}
	return nil
}

// joins reports whether an event goes on with the pending turn.
func (r *record) joins(e Event) bool {
	switch {
	case !r.open || e.Sub != r.sub || e.ID != r.id:
		return false
	case e.Kind == Called || e.Kind == Delta && r.pieces:
		return true
	}
	// A thought or a text after a text or a call is a turn of its own: it may be the answer.
	return r.silent()
}

// silent reports whether the pending turn has only thoughts so far.
func (r *record) silent() bool { return r.content.empty() && len(r.pending.ToolCalls) == 0 }

func (r *record) begin(e Event) {
	r.pending = protocol.Turn{Role: protocol.TurnAssistant}
	r.content, r.thought = text{}, text{}
	if !e.Sub && r.isNew(e) {
		r.messages++
	}
	r.open, r.id, r.sub, r.pieces = true, e.ID, e.Sub, false
}

// isNew reports whether an event begins another message of the model. Without message ids, a
// call belongs to the same message as one that is still running: the model goes on when all
// have returned.
func (r *record) isNew(e Event) bool {
	if e.ID != "" {
		return e.ID != r.id || r.sub
	}
	return e.Kind != Called || r.running == 0
}

func (r *record) add(e Event) {
	switch e.Kind {
	case Text:
		r.content.add(e.Text)
		if !e.Sub {
			r.answer.text(e.Text)
		}
	case Delta:
		r.content.add(e.Text)
		r.pieces = true
		if !e.Sub {
			r.answer.delta(e.Text, e.ID)
		}
	case Reasoning:
		r.thought.add(e.Text)
		r.answer.pause()
	case Called:
		r.pending.ToolCalls = append(r.pending.ToolCalls, e.Call)
		r.pieces = false
		r.running++
		if !e.Sub {
			r.answer.tool()
		}
	}
}

// returned stores a tool's result.
func (r *record) returned(ctx context.Context, e Event) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	r.running = max(0, r.running-1)
	if !e.Sub {
		r.answer.tool()
	}
	text := e.Text
	if e.Failed {
		text = "[failed] " + text
	}
	return r.store(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: e.Call.ID, Content: text}, e.Sub)
}

// flush stores the pending turn, and what there is to say beside it.
func (r *record) flush(ctx context.Context) error {
	if r.open {
		r.open = false
		r.pending.Content, r.pending.Reasoning = r.content.String(), r.thought.String()
		if err := r.store(ctx, r.pending, r.sub); err != nil {
			return err
		}
	}
	for _, text := range r.notices {
		if err := r.store(ctx, protocol.Turn{Role: protocol.TurnSystem, Content: text}, false); err != nil {
			return err
		}
	}
	r.notices = nil
	return nil
}

// quiet stores the pending turn unless more of it is certain to follow: a tool may run for
// long, and watchers want to see its call.
func (r *record) quiet(ctx context.Context) error {
	if r.pieces || r.open && r.silent() {
		return nil
	}
	return r.flush(ctx)
}

func (r *record) store(ctx context.Context, t protocol.Turn, sub bool) error {
	if t.Content == "" && t.Reasoning == "" && len(t.ToolCalls) == 0 && t.Role != protocol.TurnTool {
		return nil
	}
	t.Content, t.Reasoning = clip(t.Content), clip(t.Reasoning)
	if t.Role == protocol.TurnAssistant && !sub && t.Content != "" {
		r.last = t.Content
	}
	if sub {
		t.Content = strings.TrimRight("[sub-agent] "+t.Content, " ")
	}
	return r.put(ctx, t)
}

// clip cuts the middle out of a text that is too long.
func clip(s string) string {
	begin, end, left := plaintext.Ends(s, maxContent/2, maxContent/2)
	if left == 0 {
		return s
	}
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", begin, left, end)
}
