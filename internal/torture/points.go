package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/torture/trace"
)

// point is one test case: a fault at one call of one command.
type point struct {
	subject subject
	at      int
	fault   trace.Fault
}

// String returns the text that -match searches: "thread kill: EIO at 12".
func (p point) String() string { return fmt.Sprintf("%s: %s at %d", p.subject.name, p.fault, p.at) }

// points injects every fault into every system call that writes, in every command that writes. The seed
// determines the order, so that a short run covers a fair sample.
func points(ctx context.Context, t *trial) error {
	all, err := t.allPoints(ctx)
	if err != nil {
		return err
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(p point) bool { return !strings.Contains(p.String(), t.match) })
	t.random.Shuffle(len(ours), func(i, j int) { ours[i], ours[j] = ours[j], ours[i] })
	var s *stage
	for _, p := range ours {
		if ctx.Err() != nil || !t.whole && !t.time(ctx) {
			break
		}
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		hit, err := t.try(ctx, s, p)
		if err != nil {
			return fmt.Errorf("%s (%s): %w", p, hit, err)
		}
		t.rounds++
	}
	t.note("%d of %d points (commands × calls × faults)", t.rounds, len(all))
	return nil
}

// counted returns the commands to test: in the short form a few, since counting their calls takes a while.
func (t *trial) counted() []subject {
	all := subjects()
	named := func(sub subject) bool { return strings.HasPrefix(t.match, sub.name+":") }
	if slices.ContainsFunc(all, named) {
		return slices.DeleteFunc(all, func(sub subject) bool { return !named(sub) })
	}
	if t.short() {
		t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:3]
	}
	return all
}

// allPoints counts the calls of every subject.
func (t *trial) allPoints(ctx context.Context) ([]point, error) {
	var all []point
	s, err := t.stage(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, sub := range t.counted() {
		args, err := sub.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sub.name, err)
		}
		out, e, err := s.traced(ctx, trace.Plan{Under: s.home}, args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sub.name, err)
		}
		if e.Code != 0 || out.Calls == 0 {
			return nil, fmt.Errorf("%s: %d calls seen: %s", sub.name, out.Calls, e)
		}
		for at := 1; at <= out.Calls; at++ {
			for _, f := range trace.Faults() {
				all = append(all, point{sub, at, f})
			}
		}
	}
	return all, removeAll(s.dir)
}

// try injects one fault and checks the guarantees.
func (t *trial) try(ctx context.Context, s *stage, p point) (trace.Call, error) {
	args, err := p.subject.prepare(ctx, s)
	if err != nil {
		return trace.Call{}, err
	}
	out, e, err := s.traced(ctx, trace.Plan{Under: s.home, At: p.at, Fault: p.fault}, args)
	if err != nil {
		return out.Hit, err
	}
	if err := e.sane(); err != nil {
		return out.Hit, err
	}
	s.promise.heard(e.Stdout)
	err = nil
	switch {
	case e.Code == 0:
		err = p.subject.done(ctx, s, e)
	case out.WasHit && e.Signal == "" && e.Code != exitAgent && !strings.Contains(e.Stderr, p.fault.Says()):
		err = errors.New("the error does not say why")
	}
	if err == nil {
		err = s.check(ctx)
	}
	if err != nil {
		return out.Hit, fmt.Errorf("%w\nafter: %s", err, e)
	}
	return out.Hit, nil
}

// traced runs a command under the tracer.
func (s *stage) traced(ctx context.Context, plan trace.Plan, args []string) (out trace.Outcome, e ended, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e, err = s.run(ctx, func(cmd *exec.Cmd) (err error) {
		out, err = trace.Run(cmd, plan)
		return err
	}, args)
	e.Code, e.Signal = out.Code, out.Signal
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("does not end: %s", e)
	}
	return out, e, err
}
