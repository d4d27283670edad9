package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// among is a home with n threads, of which one is real and the others stand at
// the same head.
func (b *bench) among(ctx context.Context, n int) (place, error) {
	return fixture(b, fmt.Sprintf("a home with %d threads", n), func() (place, error) {
		p, err := b.begun(ctx, fmt.Sprint("threads-", n))
		if err != nil {
			return p, err
		}
		head, err := fileheads.Open(p.home, durable.OS()).Head(ctx, p.thread)
		if err != nil {
			return p, err
		}
		heads := make([]cas.Hash, n-1)
		for i := range heads {
			heads[i] = head
		}
		return p, addThreads(p.home, heads)
	})
}

// crowd is a home with n threads of one step each, with a start and a head of
// their own.
func (b *bench) crowd(ctx context.Context, n int) (place, error) {
	return fixture(b, fmt.Sprintf("a home with %d heads", n), func() (place, error) {
		p, err := b.begun(ctx, fmt.Sprint("heads-", n))
		if err != nil {
			return p, err
		}
		heads, err := manyHeads(ctx, p, n-1)
		if err != nil {
			return p, err
		}
		return p, addThreads(p.home, heads)
	})
}

// manyHeads makes n threads like that of p and returns their heads.
func manyHeads(ctx context.Context, p place, n int) ([]cas.Hash, error) {
	s, err := fsstore.Open(ctx, filepath.Join(p.home, "cas"), fsstore.Options{Home: p.home, Flush: "none"})
	if err != nil {
		return nil, err
	}
	head, err := fileheads.Open(p.home, durable.OS()).Head(ctx, p.thread)
	if err != nil {
		return nil, err
	}
	model, err := thread.Open(ctx, s, head)
	if err != nil {
		return nil, err
	}
	batch := cas.NewBatch(s, time.Now)
	heads := make([]cas.Hash, n)
	for i := range heads {
		start := model.Start
		start.Prompt = fmt.Sprint("task ", i)
		if heads[i], err = oneStep(ctx, batch, start, *model.Last); err != nil {
			return nil, err
		}
	}
	return heads, batch.Put(ctx)
}

// oneStep makes a thread with one step and returns its head.
func oneStep(ctx context.Context, batch *cas.Batch, start protocol.Start, l thread.Step) (cas.Hash, error) {
	h, err := batch.Add(ctx, start)
	if err != nil {
		return "", err
	}
	t, err := thread.Open(ctx, batch, h)
	if err != nil {
		return "", err
	}
	return t.Append(ctx, batch, thread.Next{
		Role: l.Role, Agent: l.Agent, EdgePrompt: l.EdgePrompt, Cwd: l.Cwd, SessionID: l.SessionID,
		Output: l.Output, Detail: l.Detail, Prompt: l.Prompt, ExtractedBy: l.ExtractedBy,
		StartedAtMs: l.StartedAtMs, CompletedAtMs: l.CompletedAtMs,
	})
}

// addThreads writes the file of active threads as uwf writes it. The ids are
// older than every real one.
func addThreads(home string, heads []cas.Hash) error {
	var text bytes.Buffer
	for i, h := range heads {
		hash := string(h)
		if strings.Trim(hash, "0123456789E") == "" {
			hash = strconv.Quote(hash) // YAML would read it as a number
		}
		fmt.Fprintf(&text, "01ARZ3NDEKTSV4RRFF%08d: %s\n", i, hash)
	}
	path := filepath.Join(home, "threads.yaml")
	own, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text.Bytes(), own...), 0o644)
}
