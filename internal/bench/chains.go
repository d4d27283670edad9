package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// chain is a home whose thread has n steps, or a few more by now.
func (b *bench) chain(ctx context.Context, n int) (place, error) {
	return fixture(b, fmt.Sprintf("a thread of %d steps", n), func() (place, error) {
		p, err := b.begun(ctx, fmt.Sprint("steps-", n))
		if err != nil {
			return p, err
		}
		return p, grow(ctx, p, n)
	})
}

// amid is a home whose thread has 10 steps, in a store of n nodes.
func (b *bench) amid(ctx context.Context, n int) (place, error) {
	return fixture(b, fmt.Sprintf("a thread among %d nodes", n), func() (place, error) {
		p, err := b.begun(ctx, fmt.Sprint("nodes-", n))
		if err != nil {
			return p, err
		}
		if err := grow(ctx, p, 10); err != nil {
			return p, err
		}
		return p, fill(ctx, filepath.Join(p.home, "cas"), n)
	})
}

// begun is a new home whose thread has one step.
func (b *bench) begun(ctx context.Context, name string) (p place, err error) {
	p.home = b.path(name)
	if p.thread, err = b.start(ctx, p.home); err != nil {
		return p, err
	}
	return p, b.step(ctx, p)
}

// grow appends to a thread until it has n steps, without a process for each. Each
// step has an output and a detail of its own.
func grow(ctx context.Context, p place, n int) error {
	s, err := fsstore.Open(ctx, filepath.Join(p.home, "cas"), fsstore.Options{Home: p.home, Flush: "none"})
	if err != nil {
		return err
	}
	x := fileheads.Open(p.home, durable.OS())
	old, err := x.Head(ctx, p.thread)
	if err != nil {
		return err
	}
	batch := cas.NewBatch(s, time.Now)
	head := old
	for {
		t, err := thread.Open(ctx, batch, head)
		if err != nil {
			return err
		}
		if t.Len() >= n {
			break
		}
		if head, err = extend(ctx, s, batch, t); err != nil {
			return err
		}
	}
	if err := batch.Put(ctx); err != nil {
		return err
	}
	return x.Move(ctx, p.thread, old, head)
}

// extend appends a step that is like the last one, but for its contents.
func extend(ctx context.Context, s cas.Store, batch *cas.Batch, t *thread.Thread) (cas.Hash, error) {
	l := t.Last
	before, err := batch.Get(ctx, l.Output)
	if err != nil {
		return "", err
	}
	output, err := node(s, before.Type, map[string]any{"$status": "again", "note": text(l.Index)})
	if err != nil {
		return "", err
	}
	if err := s.Put(ctx, output); err != nil {
		return "", err
	}
	detail, err := batch.Add(ctx, protocol.Detail{
		SessionID: fmt.Sprint("session-", l.Index), Capture: protocol.CaptureFinal, Turns: []cas.Hash{},
	})
	if err != nil {
		return "", err
	}
	return t.Append(ctx, batch, thread.Next{
		Role: l.Role, Agent: l.Agent, EdgePrompt: l.EdgePrompt, Cwd: l.Cwd, SessionID: l.SessionID,
		Output: output.Hash, Detail: detail, Prompt: l.Prompt, ExtractedBy: protocol.ByFrontmatter,
		StartedAtMs: l.StartedAtMs, CompletedAtMs: l.CompletedAtMs,
	})
}

// node makes a node of a type that satisfies it for sure.
func node(s cas.Store, typ cas.Hash, value any) (cas.Node, error) {
	payload, err := cas.Encode(value)
	return cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload, Timestamp: time.Now().UnixMilli()}, err
}

// text is what the node with a number says: some 250 bytes that compress well.
func text(n int) string { return fmt.Sprintf("node %d says something, but not much: %0200d", n, n) }

// fill puts n texts into a store without flushing them.
func fill(ctx context.Context, dir string, n int) error {
	s, err := fsstore.Open(ctx, dir, fsstore.Options{Flush: "none"})
	if err != nil {
		return err
	}
	const atOnce = 10_000
	for done := 0; done < n; {
		batch := cas.NewBatch(s, time.Now)
		for range min(atOnce, n-done) {
			if _, err := batch.Add(ctx, protocol.Text(text(done))); err != nil {
				return err
			}
			done++
		}
		if err := batch.Put(ctx); err != nil {
			return err
		}
	}
	return nil
}
