package react

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Of the window, this much may be used before room is made, and this much of what
// was said last always stays. The rest is for the reply, and so that room need not
// be made at every turn, which would cost the provider's prompt cache each time.
const (
	fullShare = 0.8
	tailShare = 0.25
	leastOut  = 0.125 // less than this is not worth a summary
)

const (
	charsPerToken = 4
	smallResult   = 400 // characters; not worth leaving out
)

// window knows how much of the model's window a conversation fills: what the
// endpoint counted for the last question, and an estimate for what came after.
type window struct {
	size  int // tokens; 0: unknown
	known int // tokens of the conversation up to the last reply
	since int // characters after that
	task  int // index of the message with the task of this run

	freed int // characters that were left out since the last question
}

func (w *window) begin(s *Session, size int, declared []llm.Tool) {
	w.size, w.task = size, len(s.Messages)-1
	if b, err := json.Marshal(declared); err == nil {
		w.since = len(b)
	}
	for _, m := range s.Messages {
		w.added(m)
	}
}

// tokens is how much the next question would fill.
func (w *window) tokens() int { return max(0, w.known+(w.since-w.freed)/charsPerToken) }

// told takes the endpoint's own count.
func (w *window) told(resp llm.Response) {
	u := resp.Usage
	if n := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens; n > 0 {
		w.known, w.since, w.freed = int(n), 0, 0
	}
}

func (w *window) added(m llm.Message) { w.since += sizeOf(m) }

func sizeOfAll(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += sizeOf(m)
	}
	return n
}

// sizeOf is a message's size in characters, as far as it is sent again.
func sizeOf(m llm.Message) int {
	n := len(m.Content) + 16
	for _, call := range m.ToolCalls {
		n += len(call.Name) + len(call.Args) + 16
	}
	for _, raw := range m.Extra {
		n += len(raw)
	}
	return n
}

// clip bounds the result of one of so many calls to an eighth of the window, and all
// of them together to a quarter: they must not push out everything else.
func (w *window) clip(text string, calls int) string {
	if w.size == 0 {
		return text
	}
	return clip(text, w.size*charsPerToken/max(8, 4*calls), "the model's window is small. Ask for less at once")
}

// clip cuts what is too long out of the middle of a text.
func clip(text string, most int, why string) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/2], text[len(text)-most/2:]
	for !utf8.ValidString(head) && head != "" {
		head = head[:len(head)-1]
	}
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[… %d bytes left out: %s. …]\n%s", head, len(text)-len(head)-len(tail), why, tail)
}

// makeRoom leaves old messages out of the conversation when it fills the window.
func (r *run) makeRoom(ctx context.Context) error {
	if r.window.size == 0 || float64(r.window.tokens()) <= fullShare*float64(r.window.size) {
		return nil
	}
	out, ok := r.old()
	if !ok || float64(sizeOfAll(r.session.Messages[out.From:out.To])/charsPerToken) < leastOut*float64(r.window.size) {
		return nil
	}
	return r.leaveOut(ctx, out)
}

// shrink makes room after the endpoint has said that there is too much. It
// reports whether it could.
func (r *run) shrink(ctx context.Context) (bool, error) {
	now := r.window.tokens()
	if r.window.size == 0 || r.window.size > now {
		r.window.size = max(now*9/10, 1) // learnt: it is smaller than this
	}
	out, ok := r.old()
	if !ok {
		return false, nil
	}
	return true, r.leaveOut(ctx, out)
}

// leaveOut puts the model's own summary of old messages in their place, or a note
// where there is none.
func (r *run) leaveOut(ctx context.Context, out room) error {
	gone := r.session.Messages[out.From:out.To]
	r.room = fmt.Sprintf("%d messages", len(gone))
	usage, why, err := r.summarize(ctx, &out)
	if err != nil {
		return err
	}
	if why != "" {
		r.room += ", without a summary of them: " + why
	} else {
		r.room += fmt.Sprintf("; a summary of %d bytes has their place", len(out.Summary))
	}
	stand := sizeOfAll(out.instead(r.session.Messages))
	l := r.line(llm.Message{}, usage)
	l.Room = &out
	if err := r.session.leaveOut(l); err != nil {
		return err
	}
	r.window.freed += sizeOfAll(gone) - stand
	r.guard.forget()
	switch {
	case out.Keep > 0:
		r.window.task = out.From + 1
	case r.window.task >= out.To:
		r.window.task -= out.To - out.From - 1
	}
	if turn, ok := l.summaryTurn(); ok {
		return r.record(ctx, turn)
	}
	return nil
}

// old is the part of the conversation that may be left out: all between its beginning
// and what was said last but for the task of this run. It begins with a reply, or
// what stands in for older ones, and ends before no result, so that calls and results
// stay together. There is none without a reply in it.
func (r *run) old() (out room, ok bool) {
	messages := r.session.Messages
	out.From = slices.IndexFunc(messages, func(m llm.Message) bool { return m.Role == protocol.TurnAssistant || standsIn(m) })
	if out.From < 0 {
		return out, false
	}
	out.To = len(messages)
	most := int(tailShare * float64(r.window.size*charsPerToken))
	for i, size := len(messages)-1, 0; i >= out.From; i-- {
		if size += sizeOf(messages[i]); size > most && out.To < len(messages) {
			break
		}
		if messages[i].Role != protocol.TurnTool {
			out.To = i
		}
	}
	if r.window.task > out.From && r.window.task < out.To {
		out.Keep = r.window.task
	}
	isReply := func(m llm.Message) bool { return m.Role == protocol.TurnAssistant }
	return out, out.To > out.From && slices.ContainsFunc(messages[out.From:out.To], isReply)
}
