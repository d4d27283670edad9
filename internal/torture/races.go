package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
)

const (
	racers        = 64
	racedThreads  = 32
	opsPerRacer   = 6 // in one round
	raceRoundsMax = 1000
)

// races lets many processes work at once. The model is the acknowledgements: a
// command may succeed, or say that somebody else is at it; nothing else.
func races(ctx context.Context, t *trial) error {
	for t.time(ctx) {
		if err := t.race(ctx); err != nil {
			return err
		}
		t.rounds++
	}
	t.note("%d processes at once over %d threads, %d commands a round", racers, racedThreads, racers*opsPerRacer)
	return nil
}

// race is one round in a world of its own.
func (t *trial) race(ctx context.Context) error {
	w, err := t.world()
	if err != nil {
		return err
	}
	if err := w.must(ctx, nil, "workflow", "put", w.path("loop.yaml")); err != nil {
		return err
	}
	var p promise
	var ids []string
	for range racedThreads {
		id, err := w.started(ctx)
		if err != nil {
			return err
		}
		p.add(id, "")
		ids = append(ids, id)
	}
	if err := w.all(ctx, t.random.Uint64(), ids, &p); err != nil {
		return err
	}
	for _, id := range p.threads() {
		if err := w.atRest(ctx, &p, id); err != nil {
			return err
		}
	}
	if err := w.sound(ctx, &p); err != nil {
		return err
	}
	return t.away(w)
}

// all runs the racers and returns the first broken promise.
func (w *world) all(ctx context.Context, seed uint64, ids []string, p *promise) error {
	var group sync.WaitGroup
	broken := make(chan error, racers)
	for i := range racers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range opsPerRacer {
				if err := w.op(ctx, random, ids, p); err != nil {
					broken <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(broken)
	return <-broken
}

// op is one command of one racer.
func (w *world) op(ctx context.Context, random *rand.Rand, ids []string, p *promise) error {
	id := ids[random.IntN(len(ids))]
	ops := [][]string{
		w.stepArgs(id), w.stepArgs(id), w.stepArgs(id), w.stepArgs(id),
		{"thread", "list", "--all"},
		{"thread", "show", id},
		{"thread", "stop", id},
		{"cas", "gc"},
		{"thread", "start", "loop", "-p", "in a race", "--cwd", w.dir},
	}
	if step := p.last(id); step != "" {
		ops = append(ops, []string{"thread", "fork", step})
	}
	e, err := w.uwf(ctx, ops[random.IntN(len(ops))]...)
	if err != nil {
		return err
	}
	p.heard(e.Stdout)
	switch e.Code {
	case 0, exitLocked, 130, 143: // stop signals the agent of another's step
		return nil
	case exitAgent:
		return nil // a stopped agent has failed
	}
	return fmt.Errorf("not allowed in a race: %s", e)
}

// atRest holds the promises about a thread that nobody works on any more.
func (w *world) atRest(ctx context.Context, p *promise, id string) error {
	var shown struct{ Status string }
	if err := w.must(ctx, &shown, "thread", "show", id, "--format", "json"); err != nil {
		return err
	}
	if shown.Status == "running" {
		return fmt.Errorf("thread %s looks as if somebody works on it", id)
	}
	return w.goesOn(ctx, p, id)
}
