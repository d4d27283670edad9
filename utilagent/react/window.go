package react

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Fractions of the window: how much may be used before messages are removed, and how much of the latest
// messages always stays. The rest is for the reply, and avoids removing messages at every turn, which would
// invalidate the provider's prompt cache each time.
const (
	fullShare = 0.8
	tailShare = 0.25
	leastOut  = 0.125 // less than this is not worth a summary
)

const (
	charsPerToken = 4
	smallResult   = 400 // characters; not worth removing
)

// window tracks how much of the model's context window a conversation fills: the endpoint's count for the
// last request, and an estimate for what came after.
type window struct {
	size  int // in tokens; 0 if unknown
	known int // tokens of the conversation up to the last reply
	since int // characters after that
	task  int // index of the message with the task of this run

	freed int // characters removed since the last request
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

// tokens estimates the size of the next request.
func (w *window) tokens() int { return max(0, w.known+(w.since-w.freed)/charsPerToken) }

// recordResponse takes the endpoint's count.
func (w *window) recordResponse(resp llm.Response) {
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

// sizeOf returns a message's size in characters, counting only the parts that are sent again.
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

// clip limits a result to an eighth of the window, and all results of a reply together to a quarter, so that
// they do not displace everything else.
func (w *window) clip(text string, calls int) string {
	if w.size == 0 {
		return text
	}
	return clip(text, w.size*charsPerToken/max(8, 4*calls), "the model's window is small. Ask for less at once")
}

// clip removes the middle of a text that is too long.
func clip(text string, most int, why string) string {
	head, tail, left := plaintext.Ends(text, most/2, most/2)
	if left == 0 {
		return text
	}
	return fmt.Sprintf("%s\n[… %d bytes left out: %s. …]\n%s", head, left, why, tail)
}

// makeRoom removes old messages from the conversation when it fills the window.
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

// shrink removes messages after the endpoint reported that there are too many, and reports whether it could.
func (r *run) shrink(ctx context.Context) (bool, error) {
	now := r.window.tokens()
	if r.window.size == 0 || r.window.size > now {
		r.window.size = max(now*9/10, 1) // learned: the window is smaller than this
	}
	out, ok := r.old()
	if !ok {
		return false, nil
	}
	return true, r.leaveOut(ctx, out)
}

// leaveOut replaces old messages with the model's own summary, or with a note if there is none.
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

// old returns the part of the conversation that can be removed: everything between its beginning and the
// latest messages, except the task of this run. It begins with a reply, or with a stand-in for older ones,
// and never ends before a result, so that calls and results stay together. ok is false if it contains no
// reply.
func (r *run) old() (out room, ok bool) {
	messages := r.session.Messages
	out.From = slices.IndexFunc(messages, func(m llm.Message) bool { return m.Role == protocol.TurnAssistant || isReplacement(m) })
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

// askSummary asks the model for what it needs to continue without the messages above.
const askSummary = "[This conversation is about to fill your window. The messages above will be removed, except your task, " +
	"and your summary takes their place: you will not remember anything else. Write it for yourself, in at most 1000 words, without calling a tool:\n" +
	"- what was decided, and why;\n" +
	"- which files were made or changed, and how far each is;\n" +
	"- what was tried and failed, so that it is not tried again;\n" +
	"- what was promised, asked for or is still to do;\n" +
	"- names, numbers, paths and commands that are needed later, exactly as they are.\n" +
	"What an earlier summary says and still matters belongs into it. It is no final answer: write nothing but the summary.]"

// maxSummary bounds a summary in bytes, for models that ignore the requested length.
const maxSummary = 16 << 10

// summarize asks the model for a summary of the part to be removed. If it gives none, why is the reason, and
// the messages are removed anyway without asking again. An error must end the run.
//
// The request starts like the previous one, so that the provider's prompt cache hits.
func (r *run) summarize(ctx context.Context, out *room) (usage *protocol.Usage, why string, err error) {
	switch r.why {
	case MaxTokens, MaxCost, MaxTime:
		return nil, "the budget is used up", nil
	}
	messages, ok := r.digest(r.session.Messages[:out.To])
	if !ok {
		return nil, "they are longer than the model can read", nil
	}
	resp, err := r.complete(ctx, llm.Request{
		Messages: append(messages, llm.User(askSummary)), Tools: r.declared, NoCalls: true,
	}, Exchange{Summary: true})
	r.charge(resp)
	if err != nil {
		if ctx.Err() != nil || stopsRun(err) {
			return nil, "", err
		}
		return nil, err.Error(), nil
	}
	text := strings.TrimSpace(r.clean(resp.Message).Content)
	switch {
	case resp.Finish == llm.FinishRefusal:
		return nil, "the model refuses to write one", nil
	case text == "":
		return nil, "the model wrote none", nil
	}
	most := maxSummary
	if r.window.size > 0 {
		most = min(most, int(tailShare*float64(r.window.size*charsPerToken)))
	}
	out.Summary = clip(text, most, "the summary is too long")
	return r.usage(resp), "", nil
}

// stopsRun reports whether an error would also affect the next request. Nothing is removed then, so that the
// run can be resumed with its whole conversation.
func stopsRun(err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return true // the record cannot be written
	}
	switch e.Kind {
	case errorkind.Auth, errorkind.Quota, errorkind.RateLimit, llm.Network:
		return true
	}
	return false
}

// digest shortens the beginning of a conversation until the model can read it, by removing old tool results.
// It reports whether that is enough.
func (r *run) digest(messages []llm.Message) ([]llm.Message, bool) {
	messages = slices.Clone(messages)
	size := sizeOfAll(messages)
	most := int(fullShare * float64(r.window.size*charsPerToken))
	for i, m := range messages {
		if size <= most {
			break
		}
		if m.Role == protocol.TurnTool && len(m.Content) > smallResult {
			messages[i].Content = fmt.Sprintf("[This result (%d bytes) was removed to make room. Make the call again if you "+
				"need it.]", len(m.Content))
			size -= len(m.Content) - len(messages[i].Content)
		}
	}
	return messages, size <= most
}

// room describes a removal: a range of messages and its replacement.
type room struct {
	From    int    `json:"from,omitempty"`
	To      int    `json:"to,omitempty"`
	Keep    int    `json:"keep,omitempty"`    // index of the task, which stays, or 0
	Summary string `json:"summary,omitempty"` // if "", a note replaces the messages
}

// apply performs the removal. It returns false if it does not fit the messages.
func (r room) apply(messages []llm.Message) ([]llm.Message, bool) {
	if r.From < 0 || r.From > r.To || r.To > len(messages) || r.Keep != 0 && (r.Keep <= r.From || r.Keep >= r.To) {
		return messages, false
	}
	messages = slices.Clone(messages) // a caller may still use the old slice
	return slices.Replace(messages, r.From, r.To, r.instead(messages)...), true
}

// instead returns the replacement of the messages.
func (r room) instead(messages []llm.Message) []llm.Message {
	if r.Keep == 0 {
		return []llm.Message{r.stand()}
	}
	return []llm.Message{llm.User(cutNote), messages[r.Keep], r.stand()}
}

// stand returns the summary, or a note that there is none.
func (r room) stand() llm.Message {
	if r.Summary == "" {
		return llm.User(cutNote)
	}
	return llm.User(summaryHead + promptquote.Text(promptquote.Summary, r.Summary))
}

const (
	// cutNote replaces messages without a summary.
	cutNote = "[Earlier messages of this conversation were removed to make room.]"
	// summaryHead precedes a summary.
	summaryHead = "[Earlier messages of this conversation were removed to make room. Before that you wrote this " +
		"summary of them. Continue from there, and read again what you need.]\n\n"
)

// isReplacement reports whether a message replaces others.
func isReplacement(m llm.Message) bool {
	return m.Role == protocol.TurnUser && (m.Content == cutNote || strings.HasPrefix(m.Content, summaryHead))
}

// leaveOut removes messages. It writes a single line, so a killed process has removed all of them or none.
// The messages themselves stay in the file.
func (s *Session) leaveOut(l line) error {
	messages, ok := l.Room.apply(s.Messages)
	if !ok {
		return fmt.Errorf("session %s: there is nothing at %d to %d", s.ID, l.Room.From, l.Room.To)
	}
	b, err := json.Marshal(struct {
		AtMs  int64           `json:"atMs,omitempty"`
		Usage *protocol.Usage `json:"usage,omitempty"`
		Room  *room           `json:"room"`
	}{l.AtMs, l.Usage, l.Room})
	if err == nil {
		err = s.append(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Messages = messages
	return nil
}
