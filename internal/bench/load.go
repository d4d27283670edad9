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
	return []row{
		versus(what, l.wallPerStep, 4, "2 empty programs, same flushes, 2 at once", l.floorPerStep).in("ms/step").atMost(fewest),
		versus(what+": CPU", l.cpuPerStep, 0, "CPU of 2 empty programs, 2 at once", l.floorCPU).in("ms/step").atMost(fewest),
	}
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

// run makes all steps of new threads and returns what they took.
func (l load) run(ctx context.Context) (wall, cpu time.Duration, err error) {
	home, threads, err := l.started(ctx)
	if err != nil {
		return 0, 0, err
	}
	agent, err := l.agent()
	if err != nil {
		return 0, 0, err
	}
	spent := make([]time.Duration, len(threads)*stepsEach)
	began := time.Now()
	// A thread's steps come after each other: i counts through the threads of one
	// half before it comes back to the first.
	err = twoAtOnce(len(spent), func(i int) error {
		cmd := l.command(ctx, home, l.program("uwf"), "--quiet", "thread", "step", threads[i%len(threads)], "--agent", agent)
		err := silent(cmd)
		spent[i] = cpuTime(cmd)
		return err
	})
	wall = time.Since(began)
	for _, s := range spent {
		cpu += s
	}
	return wall, cpu, err
}

func cpuTime(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func (l load) wallPerStep(ctx context.Context) (float64, error) {
	wall, _, err := l.run(ctx)
	return l.perStep(wall), err
}

func (l load) cpuPerStep(ctx context.Context) (float64, error) {
	_, cpu, err := l.run(ctx)
	return l.perStep(cpu), err
}

func (l load) perStep(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000 / float64(l.threads*stepsEach)
}

func (l load) floorPerStep(ctx context.Context) (float64, error) {
	if _, err := l.helper(ctx, "empty"); err != nil {
		return 0, err
	}
	first := l.fresh(l.threads * stepsEach)
	began := time.Now()
	err := twoAtOnce(l.threads*stepsEach, func(i int) error {
		for range 2 {
			if err := l.empty(ctx); err != nil {
				return err
			}
		}
		return l.flushes(first + i)
	})
	return l.perStep(time.Since(began)), err
}

func (l load) floorCPU(ctx context.Context) (float64, error) {
	spent := make([]time.Duration, l.threads*stepsEach)
	program, err := l.helper(ctx, "empty")
	if err != nil {
		return 0, err
	}
	err = twoAtOnce(len(spent), func(i int) error {
		for range 2 {
			cmd := exec.CommandContext(ctx, program)
			if err := cmd.Run(); err != nil {
				return err
			}
			spent[i] += cpuTime(cmd)
		}
		return nil
	})
	var cpu time.Duration
	for _, s := range spent {
		cpu += s
	}
	return l.perStep(cpu), err
}
