package acp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// prompt is one prompt while the agent works at it. The client's mutex guards it.
type prompt struct {
	session string
	teller  *teller
	going   func() bool // false once it is to be cancelled, and the agent knows
	refuses []string    // what was not allowed
	strays  []string    // other sessions that were told about
}

// update takes an update of any session.
func (p *prompt) update(u updateParams) {
	if u.SessionID == "" || u.SessionID == p.session {
		p.teller.update(u.Update)
		return
	}
	// Either a sub-agent's, or the session has come back under another id, which
	// shows when nothing else comes.
	if !slices.Contains(p.strays, u.SessionID) && len(p.strays) < 10 {
		p.strays = append(p.strays, u.SessionID)
	}
}

// permission finds the call that a permission is asked for.
func (p *prompt) permission(t toolCall, content json.RawMessage) (*call, bool) {
	return p.teller.asked(t, content), p.going()
}

// refused notes what was not allowed.
func (p *prompt) refused(what string) {
	if len(p.refuses) < 20 {
		p.refuses = append(p.refuses, what)
	}
	p.teller.emit(cliagent.Event{Kind: cliagent.Notice, Text: "refused: " + what})
}

// ask sends a prompt and tells what comes of it, until it is answered or ctx
// ends: then it is cancelled, and the agent has the time of patience to say how
// it ended.
func (c *client) ask(ctx context.Context, text string, patience func() time.Duration, emit func(cliagent.Event)) (prompted, *prompt, error) {
	params := promptParams{SessionID: c.session, Prompt: c.blocks(text)}
	p := &prompt{session: c.session, teller: newTeller(emit)}
	cancelled := make(chan struct{})
	p.going = func() bool {
		if ctx.Err() == nil {
			return true
		}
		select {
		case <-cancelled:
		case <-c.conn.over:
		}
		return false
	}
	c.work(p)
	defer c.work(nil)

	patient, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	stop := context.AfterFunc(ctx, func() {
		limit := time.After(patience())
		c.cancel(patient)
		close(cancelled)
		select {
		case <-patient.Done():
		case <-limit:
			giveUp(context.Cause(ctx))
		}
	})
	defer stop()
	var result prompted
	err := c.conn.call(patient, "session/prompt", params, &result)
	if err == nil && result.StopReason == "end_turn" && !c.answered(p) {
		err = c.settle(patient, lateWords) // some answer before they have told everything
	}
	return result, p, err
}

// blocks are the content of a prompt. What Claude Code's bridges get is read by Claude
// Code, which would take parts of one text for mentions of files.
func (c *client) blocks(text string) []promptBlock {
	parts := []string{text}
	if strings.Contains(strings.ToLower(c.agent.Info.Name), "claude") {
		parts, _ = cliagent.ClaudeBlocks(text)
	}
	blocks := make([]promptBlock, len(parts))
	for i, part := range parts {
		blocks[i] = promptBlock{Type: "text", Text: part}
	}
	return blocks
}

// answered reports whether the prompt has an answer.
func (c *client) answered(p *prompt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.teller.answered()
}

// cancel asks the agent to end the prompt.
func (c *client) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, closeWait)
	defer stop()
	_ = c.conn.notify(ctx, "session/cancel", map[string]string{"sessionId": c.session}) // otherwise it is stopped
}

// work sets the prompt that is at work. What was held back of the last one is
// told first.
func (c *client) work(p *prompt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompt != nil {
		c.prompt.teller.end()
	}
	c.prompt = p
}
