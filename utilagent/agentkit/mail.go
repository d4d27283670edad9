package agentkit

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/runfiles"
)

// toldMark begins what a person tells an agent at work.
const toldMark = "[A person tells you, while you work on this:]\n"

// Letter is something that a person tells an agent at work.
type Letter struct {
	Text string
	file runfiles.Letter
}

// Letters are what people have told the thread and no agent has heard, oldest first.
func (r *Request) Letters() []Letter {
	var letters []Letter
	for _, l := range runfiles.Dir(r.RunDir).Unread() {
		letters = append(letters, Letter{Text: toldMark + r.kit.secrets.Hide(valid(l.Text)), file: l})
	}
	return letters
}

// Heard notes that the agent was told of a letter: it is not given again, except where
// the visit has to start over. What is not heard is kept for the next visit.
func (r *Request) Heard(l Letter) error {
	if err := runfiles.Dir(r.RunDir).Told(l.file, r.Head); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	r.kit.heard = strings.TrimPrefix(r.kit.heard+"\n\n"+l.Text, "\n\n")
	return nil
}

// Mail delivers what people have told the thread. An agent that can hear something while
// it works should ask before each question to its model, and make each a turn.
func (r *Request) Mail(ctx context.Context, deliver func(ctx context.Context, text string) error) error {
	for _, l := range r.Letters() {
		if err := deliver(ctx, l.Text); err != nil {
			return err
		}
		if err := r.Heard(l); err != nil {
			return err
		}
	}
	return nil
}

// mail is what people have told the thread, for a prompt: each is a turn of its own.
func (k *kit) mail(ctx context.Context, req *Request) (string, error) {
	var texts []string
	err := req.Mail(ctx, func(ctx context.Context, text string) error {
		texts = append(texts, text)
		return k.turns.corrected(ctx, text, nil)
	})
	return strings.Join(texts, "\n\n"), err
}

// tellAtOnce adds to the prompt what was told before the visit began.
func (k *kit) tellAtOnce(ctx context.Context, req *Request) error {
	if err := runfiles.Dir(req.RunDir).SettleMail(req.Head, req.Interrupted); err != nil {
		return fmt.Errorf("mailbox: %w", err)
	}
	_, err := k.mail(ctx, req)
	req.hear()
	return err
}

// hear adds to the prompt what was told so far.
func (r *Request) hear() {
	if r.kit.heard != "" {
		r.Prompt += "\n\n" + r.kit.heard
		r.User += "\n\n" + r.kit.heard
	}
	r.kit.turns.given(r.Prompt)
}
