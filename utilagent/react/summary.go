package react

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// askSummary asks the model for what it needs to go on without the messages above.
const askSummary = "[This conversation is about to fill your window. What was said above is going to be removed, but for your task, " +
	"and what you write now takes its place: what is not in it you will not know. Write it for yourself, in at most 1000 words, without calling a tool:\n" +
	"- what was decided, and why;\n" +
	"- which files were made or changed, and how far each is;\n" +
	"- what was tried and failed, so that it is not tried again;\n" +
	"- what was promised, asked for or is still to do;\n" +
	"- names, numbers, paths and commands that are needed later, exactly as they are.\n" +
	"What an earlier summary says and still matters belongs into it. It is no final answer: write nothing but the summary.]"

// maxSummary bounds a summary that does not keep to that, in bytes.
const maxSummary = 16 << 10

// summarize asks the model for a summary of what is to be left out. Where it gives
// none, why says so, and the messages are left out anyway: it is asked once. The
// error is one with which the run must end.
//
// The question is the beginning of the last one, so that the provider's prompt cache hits.
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
	}, Asked{Summary: true})
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

// stopsRun reports an error that would meet the next question, too: nothing is left
// out for it, so that the run can be resumed with all of its conversation.
func stopsRun(err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return true // a record that cannot be written
	}
	switch e.Kind {
	case llm.KindAuth, llm.KindQuota, llm.KindRateLimit, llm.KindNetwork:
		return true
	}
	return false
}

// digest is the beginning of a conversation in a form that the model can read: where
// it is too long, old results of tools are left out. It reports whether that is enough.
func (r *run) digest(messages []llm.Message) ([]llm.Message, bool) {
	messages = slices.Clone(messages)
	size := sizeOfAll(messages)
	most := int(fullShare * float64(r.window.size*charsPerToken))
	for i, m := range messages {
		if size <= most {
			break
		}
		if m.Role == protocol.TurnTool && len(m.Content) > smallResult {
			messages[i].Content = leftOut(m.Content)
			size -= len(m.Content) - len(messages[i].Content)
		}
	}
	return messages, size <= most
}
