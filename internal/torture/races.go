package main

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/durable"
)

const (
	racers       = 64
	racedThreads = 32
	mortals      = 8 // number of threads that may be killed
)

// races runs many processes concurrently. A command may succeed, or report that another process is working on
// the thread; what it reports must fit the model ([account]).
func races(ctx context.Context, t *trial) error {
	var slow time.Duration
	for t.rounds == 0 || t.time(ctx) {
		took, err := t.race(ctx)
		if err != nil {
			return err
		}
		slow = max(slow, took)
		t.rounds++
	}
	t.note("%d processes at once over %d threads, %d commands a round; the slowest command took %s",
		racers, racedThreads, racers*t.opsPerRacer(), slow.Round(time.Millisecond))
	return nil
}

// opsPerRacer returns how many commands a racer runs in one round.
func (t *trial) opsPerRacer() int {
	if t.short() {
		return 2
	}
	return 6
}

// race runs one round in a new world. It returns the duration of the slowest command.
func (t *trial) race(ctx context.Context) (time.Duration, error) {
	w, err := t.world()
	if err != nil {
		return 0, err
	}
	if err := w.must(ctx, nil, "workflow", "put", w.path("loop.yaml")); err != nil {
		return 0, err
	}
	r := &raceTrack{world: w, account: newAccount(), now: t.env.Now}
	for range racedThreads {
		id, err := w.started(ctx)
		if err != nil {
			return 0, err
		}
		r.promise.add(id, "")
		r.ids = append(r.ids, id)
	}
	if err := r.all(ctx, t.random.Uint64(), t.opsPerRacer()); err != nil {
		return 0, err
	}
	for _, id := range r.promise.threads() {
		if err := r.atRest(ctx, id); err != nil {
			return 0, err
		}
	}
	if err := w.unlocked(); err != nil {
		return 0, err
	}
	if err := w.sound(ctx, &r.promise); err != nil {
		return 0, err
	}
	return r.account.slowest, removeAll(w.dir)
}

// raceTrack is the shared state of racers.
type raceTrack struct {
	*world
	ids     []string
	promise promise
	account *account
	now     func() time.Time
}

// all runs the racers and returns the first violation.
func (r *raceTrack) all(ctx context.Context, seed uint64, each int) error {
	var group sync.WaitGroup
	broken := make(chan error, racers)
	for i := range racers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range each {
				file := r.path(fmt.Sprintf("%d-%d.uwfb", i, n))
				if err := r.op(ctx, random, file); err != nil {
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

// op runs one command of one racer.
func (r *raceTrack) op(ctx context.Context, random *rand.Rand, file string) error {
	id := r.ids[random.IntN(len(r.ids))]
	ops := [][]string{
		r.stepArgs(id), r.stepArgs(id), r.stepArgs(id), r.stepArgs(id),
		{"thread", "show", id}, {"thread", "show", id},
		{"thread", "list", "--all"},
		{"thread", "stop", id},
		{"thread", "kill", r.ids[random.IntN(mortals)]},
		{"thread", "export", id, "-o", file},
		{"cas", "gc", "--grace", "0s"},
		{"thread", "start", "loop", "-p", "in a race", "--cwd", r.dir},
	}
	if step := r.promise.last(id); step != "" {
		ops = append(ops, []string{"thread", "fork", step})
	}
	args := ops[random.IntN(len(ops))]
	known := r.promise.threads()
	done := r.account.begin(args, r.now())
	e, err := r.uwf(ctx, args...)
	if err != nil {
		return err
	}
	r.promise.heard(e.Stdout)
	if err := done(e, r.now()); err != nil {
		return err
	}
	switch {
	case args[1] == "list":
		return lists(e, known)
	case args[1] == "export" && e.Code == 0:
		return r.must(ctx, nil, "verify", file)
	}
	return nil
}

// atRest checks the guarantees for a thread on which nothing works any more.
func (r *raceTrack) atRest(ctx context.Context, id string) error {
	shown, err := r.show(ctx, id)
	if err != nil {
		return err
	}
	ended := shown.Status == "cancelled"
	if shown.Status == "running" || ended != r.account.killed(id) {
		return fmt.Errorf("thread %s is %s; somebody was told that it is killed: %t", id, shown.Status, r.account.killed(id))
	}
	if ended {
		err = r.kept(ctx, &r.promise, id)
	} else {
		err = r.goesOn(ctx, &r.promise, id)
	}
	if err != nil {
		return err
	}
	chain, err := r.chain(ctx, id)
	if err != nil {
		return err
	}
	return r.account.inOrder(id, chain)
}

// unlocked checks that no lock is left behind.
func (w *world) unlocked() error {
	return filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".lock" {
			return err
		}
		held, err := durable.TryLock(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a lock is left behind: %w", err)
		}
		return held.Unlock()
	})
}
