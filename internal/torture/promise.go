package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// promise records the steps that uwf has acknowledged. It is the whole model: everything acknowledged stays,
// everything finished counts once, and the thread can continue.
type promise struct {
	mu   sync.Mutex
	acks map[string][]string // heads by thread, in the order of acknowledgement
}

// threads returns the acknowledged threads.
func (p *promise) threads() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for id := range p.acks {
		out = append(out, id)
	}
	return out
}

// add records an acknowledgement; a head of "" only means that the thread exists.
func (p *promise) add(thread, head string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acks == nil {
		p.acks = map[string][]string{}
	}
	heads := p.acks[thread]
	if head != "" {
		heads = append(heads, head)
	}
	p.acks[thread] = heads
}

// forget drops a thread that was removed on purpose.
func (p *promise) forget(thread string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.acks, thread)
}

func (p *promise) heads(thread string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.acks[thread]...)
}

// last returns the newest acknowledged head, or "".
func (p *promise) last(thread string) string {
	if heads := p.heads(thread); len(heads) > 0 {
		return heads[len(heads)-1]
	}
	return ""
}

// heard reads a command's output, however it ended: every complete line is an acknowledgement.
func (p *promise) heard(stdout []byte) {
	for _, s := range acknowledged(stdout) {
		p.add(s.Thread, s.StepHash)
	}
}

// ack is a command's report about a thread.
type ack struct{ Thread, StepHash string }

// acknowledged parses one object or a list of them, and ignores anything else.
func acknowledged(stdout []byte) []ack {
	var one struct {
		ack
		Steps []ack
	}
	many := []ack{}
	if json.Unmarshal(stdout, &one) == nil {
		many = append(one.Steps, one.ack)
	} else if json.Unmarshal(stdout, &many) != nil {
		return nil
	}
	return slices.DeleteFunc(many, func(a ack) bool { return a.Thread == "" })
}

// goesOn checks that a thread is intact: it can be stepped, and then contains everything acknowledged or
// finished, once.
func (w *world) goesOn(ctx context.Context, p *promise, thread string) error {
	if err := w.stepAgain(ctx, p, thread); err != nil {
		return err
	}
	return w.kept(ctx, p, thread)
}

// stepAgain makes the next step.
func (w *world) stepAgain(ctx context.Context, p *promise, thread string) error {
	e, err := w.stepUnlocked(ctx, thread)
	if err != nil {
		return err
	}
	if e.Code != 0 {
		return fmt.Errorf("the next step fails: %s", e)
	}
	p.heard(e.Stdout)
	return nil
}

// stepUnlocked steps a thread. It waits for an agent that outlived its engine, as the error advises.
func (w *world) stepUnlocked(ctx context.Context, thread string) (ended, error) {
	const tries = 50
	for range tries {
		e, err := w.uwf(ctx, w.stepArgs(thread)...)
		if err != nil || e.Code != exitLocked {
			return e, err
		}
		if _, err := w.uwf(ctx, "thread", "wait", thread); err != nil {
			return e, err
		}
	}
	return ended{}, fmt.Errorf("thread %s stays locked", thread)
}

// kept checks that a thread contains everything that it should, once.
func (w *world) kept(ctx context.Context, p *promise, thread string) error {
	chain, err := w.chain(ctx, thread)
	if err != nil {
		return err
	}
	for _, ack := range p.heads(thread) {
		if !slices.Contains(chain, ack) {
			return fmt.Errorf("lost: step %s of thread %s was acknowledged", ack, thread)
		}
	}
	return w.once(thread, chain)
}

// once checks that finished work is in the chain and was not done twice.
func (w *world) once(thread string, chain []string) error {
	entries, err := w.ledger.entries()
	if err != nil {
		return err
	}
	after := map[string]string{}
	for _, e := range entries {
		if e.Thread != thread {
			continue
		}
		if !slices.Contains(chain, e.Step) {
			return fmt.Errorf("lost: the agent finished step %s of thread %s", e.Step, thread)
		}
		if other := after[e.Follows]; other != "" {
			return fmt.Errorf("doubled: steps %s and %s of thread %s both follow %s", other, e.Step, thread, e.Follows)
		}
		after[e.Follows] = e.Step
	}
	return nil
}

// sound checks that the store and the index have no fault, that the config is readable, and that every
// acknowledged thread is listed.
func (w *world) sound(ctx context.Context, p *promise) error {
	for _, args := range [][]string{{"cas", "fsck"}, {"config", "list"}} {
		if err := w.must(ctx, nil, args...); err != nil {
			return err
		}
	}
	e, err := w.uwf(ctx, "thread", "list", "--all", "--format", "json")
	if err == nil && e.Code != 0 {
		err = fmt.Errorf("should succeed: %s", e)
	}
	if err != nil {
		return err
	}
	return lists(e, p.threads())
}

// lists checks that all known threads are listed.
func lists(e ended, known []string) error {
	if e.Code != 0 {
		return nil
	}
	var all []shown
	if err := json.Unmarshal(e.Stdout, &all); err != nil {
		return fmt.Errorf("not JSON (%w): %s", err, e)
	}
	for _, id := range known {
		if !slices.ContainsFunc(all, func(s shown) bool { return s.Thread == id }) {
			return fmt.Errorf("lost: thread %s is not listed: %s", id, e)
		}
	}
	return nil
}
