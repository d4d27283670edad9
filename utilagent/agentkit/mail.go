package agentkit

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/rundir"
)

// toldMark begins what a person tells an agent at work.
const toldMark = "[A person tells you, while you work on this:]\n"

// Mail gives the agent what people have told the thread since it was asked last, oldest
// first. What deliver has taken is not given again; what it has not is kept for the next
// visit. An agent that can hear something while it works should ask before each question
// to its model, and make each a turn.
func (r *Request) Mail(ctx context.Context, deliver func(ctx context.Context, text string) error) error {
	dir := rundir.Dir(r.RunDir)
	for _, l := range dir.Unread() {
		if err := deliver(ctx, toldMark+r.kit.secrets.Hide(valid(l.Text))); err != nil {
			return err
		}
		if err := dir.Told(l, r.Head); err != nil {
			return fmt.Errorf("mailbox: %w", err)
		}
	}
	return nil
}

// mail is what people have told the thread, for a prompt: each is a turn of its own.
func (k *kit) mail(ctx context.Context, req *Request) (string, error) {
	var texts []string
	err := req.Mail(ctx, func(ctx context.Context, text string) error {
		texts = append(texts, text)
		return k.turns.corrected(ctx, text)
	})
	return strings.Join(texts, "\n\n"), err
}

// tellAtOnce adds to the prompt what was told before the visit began.
func (k *kit) tellAtOnce(ctx context.Context, req *Request) error {
	if err := rundir.Dir(req.RunDir).SettleMail(req.Head, req.Interrupted); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	var err error
	k.heard, err = k.mail(ctx, req)
	req.hear()
	return err
}

// hear adds to the prompt what was told before the visit began.
func (r *Request) hear() {
	if r.kit.heard != "" {
		r.Prompt += "\n\n" + r.kit.heard
		r.User += "\n\n" + r.kit.heard
	}
	r.kit.turns.given(r.Prompt)
}
