package react

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Of the window, this much may be used before room is made, and this much is
// used afterwards: the rest of it is for the reply, and so that room need not be
// made at every turn, which would cost the provider's prompt cache each time.
const (
	fullShare  = 0.8
	roomyShare = 0.5
)

const (
	charsPerToken = 4
	keepMessages  = 8   // at the end that are never left out
	smallResult   = 400 // characters; not worth leaving out
)

// window knows how much of the model's window a conversation fills: what the
// endpoint counted for the last question, and an estimate for what came after.
type window struct {
	size  int // tokens; 0: unknown
	known int // tokens of the conversation up to the last reply
	since int // characters after that, those of expected messages included
	hope  int // characters that were announced, but are not there yet
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
func (w *window) tokens() int { return max(0, w.known+(w.since+w.hope-w.freed)/charsPerToken) }

// told takes the endpoint's own count.
func (w *window) told(resp llm.Response) {
	u := resp.Usage
	if n := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens; n > 0 {
		w.known, w.since, w.freed = int(n), 0, 0
	}
}

func (w *window) added(m llm.Message) {
	w.since += sizeOf(m)
	w.hope = 0
}

// expect announces a message.
func (w *window) expect(chars int) { w.hope = chars }

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

// clip bounds a tool's result to an eighth of the window: a single one must not
// push out everything else.
func (w *window) clip(text string) string {
	most := w.size * charsPerToken / 8
	if w.size == 0 || len(text) <= most {
		return text
	}
	head, tail := text[:most/2], text[len(text)-most/2:]
	for !utf8.ValidString(head) && head != "" {
		head = head[:len(head)-1]
	}
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s\n[… %d bytes left out: the model's window is small. Ask for less at once. …]\n%s", head, len(text)-len(head)-len(tail), tail)
}

// makeRoom leaves old parts of the conversation out when it fills the window.
func (r *run) makeRoom() error {
	if r.window.size == 0 || float64(r.window.tokens()) <= fullShare*float64(r.window.size) {
		return nil
	}
	_, err := r.leaveOut(int(roomyShare * float64(r.window.size)))
	return err
}

// shrink makes room after the endpoint has said that there is too much. It
// reports whether it could.
func (r *run) shrink() (bool, error) {
	now := r.window.tokens()
	if r.window.size == 0 || r.window.size > now {
		r.window.size = max(now*9/10, 1) // learnt: it is smaller than this
	}
	return r.leaveOut(now / 2)
}

// leaveOut brings the conversation down to a number of tokens, as far as it can:
// old results of tools first, oldest first, then whole old replies. It reports
// whether anything could be left out.
func (r *run) leaveOut(target int) (bool, error) {
	results, err := r.leaveOutResults(target)
	if err != nil {
		return false, err
	}
	replies := 0
	if r.window.tokens() > target {
		if replies, err = r.leaveOutReplies(target); err != nil {
			return false, err
		}
	}
	switch {
	case replies > 0:
		r.room = fmt.Sprintf("the results of %d calls and %d old messages", results, replies)
	case results > 0:
		r.room = fmt.Sprintf("the results of %d calls", results)
	}
	return results+replies > 0, nil
}

func (r *run) leaveOutResults(target int) (int, error) {
	var at []int
	for i := 0; i < len(r.session.Messages)-keepMessages && r.window.tokens() > target; i++ {
		m := r.session.Messages[i]
		if m.Role != protocol.TurnTool || len(m.Content) <= smallResult {
			continue
		}
		at = append(at, i)
		r.window.freed += len(m.Content) - len(leftOut(m.Content))
	}
	if len(at) == 0 {
		return 0, nil
	}
	return len(at), r.session.shorten(at)
}

// leaveOutReplies cuts replies with their results out of the conversation,
// first those before the task of this run, then those after it.
func (r *run) leaveOutReplies(target int) (int, error) {
	total := 0
	for _, after := range []bool{false, true} {
		from, to := r.oldReplies(after)
		cut, size := from, 0
		for cut < to && (r.window.tokens()-size/charsPerToken > target || r.session.Messages[cut].Role == protocol.TurnTool) {
			size += sizeOf(r.session.Messages[cut])
			cut++
		}
		if cut-from < 2 {
			continue
		}
		if err := r.session.cut(from, cut); err != nil {
			return total, err
		}
		if !after {
			r.window.task -= cut - from - 1
		}
		r.window.freed += size
		total += cut - from
	}
	return total, nil
}

// oldReplies is the part of the conversation before or after the task that may
// be cut out. It begins with a reply or an older note, and ends before no result, so that calls and
// results stay together.
func (r *run) oldReplies(after bool) (from, to int) {
	messages := r.session.Messages
	to = r.window.task
	if after {
		from, to = r.window.task+1, len(messages)-keepMessages
	}
	for from < to && messages[from].Role != protocol.TurnAssistant && messages[from].Content != cutNote {
		from++
	}
	for to > from && messages[to].Role == protocol.TurnTool {
		to--
	}
	return from, to
}

// roomNotice tells the model what was left out since its last reply.
func (r *run) roomNotice() string {
	if r.room == "" {
		return ""
	}
	return fmt.Sprintf("\n[To make room, %s were removed from this conversation. Look again at what you still need.]", r.room)
}
