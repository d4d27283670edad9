package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
)

// begin opens the conversation: the role's own of its last turn or of a try that
// was killed, else a new one.
func (w *work) begin(ctx context.Context) (*react.Session, error) {
	session, err := w.earlier(ctx)
	if session != nil || err != nil {
		return session, err
	}
	news := append([]llm.Message{llm.System(w.system())}, w.news(nil)...)
	w.told = news
	return w.sessions.New(slices.Clone(news)...)
}

// earlier opens the conversation to go on in, nil if there is none.
func (w *work) earlier(ctx context.Context) (session *react.Session, err error) {
	if w.req.SessionID == "" {
		return nil, nil
	}
	if w.req.Interrupted {
		session, err = w.goOn(ctx)
	} else {
		session, err = w.sessions.Copy(w.req.SessionID, func(old []llm.Message) []llm.Message {
			w.told = w.news(old)
			return w.told
		})
	}
	if err == nil {
		return session, nil
	}
	if !errors.Is(err, react.ErrNoSession) {
		return nil, err
	}
	fmt.Fprintf(w.run.Env.Stderr, "%s: %v; beginning a new one with the whole history\n", protocol.AgentName(w.kind.name), err)
	return nil, w.req.StartOver(ctx, err.Error())
}

const interrupted = "Your work on this was interrupted before your final answer. Go on where you were: what you have done is above. " +
	"A call without a result may have run or not; look before you make it again."

// goOn opens the conversation of a try that was killed or has failed. What
// happened in it belongs to this step as much as what will.
func (w *work) goOn(ctx context.Context) (*react.Session, error) {
	session, err := w.sessions.Open(w.req.SessionID)
	if err != nil {
		return nil, err
	}
	w.tried = session.Spent.Without(w.req.Told)
	for _, turn := range session.Unfinished {
		if err := w.req.Turn(ctx, turn); err != nil {
			return nil, err
		}
	}
	if w.loop(ctx).Answered(session) {
		return session, nil // all but the step was there
	}
	said := interrupted + "\n\n" + w.req.User
	if err := session.Add(llm.User(said)); err != nil {
		return nil, err
	}
	w.told = session.Messages[len(session.Messages)-1:]
	return session, w.req.Turn(ctx, protocol.Turn{Role: protocol.TurnUser, Content: said})
}
