package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// stepsEach is how many steps each thread of the load makes.
const stepsEach = 5

// loadRows say what steps cost when two processes make them at once, each the
// steps of half the threads.
func (b *bench) loadRows() []row {
	threads := 40
	if b.full {
		threads = 200
	}
	what := fmt.Sprintf("%d threads × %d steps, 2 at once", threads, stepsEach)
	l := load{b, threads}
	return []row{versus(what, l.perStep(l.steps), 4, "2 empty programs, same flushes, 2 at once", l.perStep(l.floor)).in("ms/step").atMost(fewest)}
}

type load struct {
	*bench
	threads int
}

// started is a home with new threads.
func (l load) started(ctx context.Context) (home string, threads []string, err error) {
	home = l.path(fmt.Sprint("load-", l.fresh(1)))
	for range l.threads {
		id, err := l.start(ctx, home)
		if err != nil {
			return "", nil, err
		}
		threads = append(threads, id)
	}
	return home, threads, nil
}

// twoAtOnce does n things, every other one beside the others, until one fails.
func twoAtOnce(n int, do func(i int) error) error {
	var errs [2]error
	var both sync.WaitGroup
	for half := range errs {
		both.Go(func() {
			for i := half; i < n && errs[half] == nil; i += 2 {
				errs[half] = do(i)
			}
		})
	}
	both.Wait()
	return errors.Join(errs[:]...)
}

// perStep is a side that costs what all steps take, by the step.
func (l load) perStep(all func(context.Context) (time.Duration, error)) side {
	return func(ctx context.Context) (float64, error) {
		took, err := all(ctx)
		return float64(took.Microseconds()) / 1000 / float64(l.threads*stepsEach), err
	}
}

// timed runs the commands of each step, two steps at once.
func (l load) timed(step func(i int) ([]*exec.Cmd, error)) (time.Duration, error) {
	began := time.Now()
	err := twoAtOnce(l.threads*stepsEach, func(i int) error {
		commands, err := step(i)
		for _, cmd := range commands {
			if err == nil {
				err = silent(cmd)
			}
		}
		return err
	})
	return time.Since(began), err
}

// steps makes all steps of new threads.
func (l load) steps(ctx context.Context) (time.Duration, error) {
	home, threads, err := l.started(ctx)
	if err != nil {
		return 0, err
	}
	agent, err := l.agent()
	if err != nil {
		return 0, err
	}
	// A thread's steps come after each other: i counts through the threads of one
	// half before it comes back to the first.
	return l.timed(func(i int) ([]*exec.Cmd, error) {
		return []*exec.Cmd{l.command(ctx, home, l.program("uwf"), "--quiet", "thread", "step", threads[i%len(threads)], "--agent", agent)}, nil
	})
}

// floor is the least that these steps can cost.
func (l load) floor(ctx context.Context) (time.Duration, error) {
	program, err := l.helper(ctx, "empty")
	if err != nil {
		return 0, err
	}
	first := l.fresh(l.threads * stepsEach)
	return l.timed(func(i int) ([]*exec.Cmd, error) {
		return []*exec.Cmd{exec.CommandContext(ctx, program), exec.CommandContext(ctx, program)}, l.flushes(first + i)
	})
}
