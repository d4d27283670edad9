package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/united-workforce/uwf/internal/torture/trace"
)

// point is one thing to try: a fault at one call of one command.
type point struct {
	subject subject
	at      int
	fault   trace.Fault
}

// points makes every system call that writes go wrong, in every command that
// writes, with every fault; in a random order, so that a short run sees a fair
// part of them.
func points(ctx context.Context, t *trial) error {
	if !trace.Supported() {
		t.note("not here: %v", trace.ErrUnsupported)
		return nil
	}
	all, err := t.allPoints(ctx)
	if err != nil {
		return err
	}
	total := len(all)
	t.random.Shuffle(total, func(i, j int) { all[i], all[j] = all[j], all[i] })
	var s *stage
	for i := 0; i < total && t.time(ctx); i++ {
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		p := all[i]
		hit, err := t.try(ctx, s, p)
		if err != nil {
			return fmt.Errorf("%s, %s at call %d (%s): %w", p.subject.name, p.fault, p.at, hit, err)
		}
		t.rounds++
	}
	t.note("%d of %d points (commands × calls × faults)", t.rounds, total)
	return nil
}

// allPoints counts the calls of every subject.
func (t *trial) allPoints(ctx context.Context) ([]point, error) {
	var all []point
	s, err := t.stage(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, sub := range subjects() {
		args, err := sub.prepare(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sub.name, err)
		}
		out, e, err := s.traced(ctx, trace.Plan{}, args)
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
	return all, t.away(s.world)
}

// try makes one call go wrong and holds what was promised.
func (t *trial) try(ctx context.Context, s *stage, p point) (trace.Call, error) {
	args, err := p.subject.prepare(ctx, s)
	if err != nil {
		return trace.Call{}, err
	}
	out, e, err := s.traced(ctx, trace.Plan{At: p.at, Fault: p.fault}, args)
	if err != nil {
		return out.Hit, err
	}
	if err := e.sane(); err != nil {
		return out.Hit, err
	}
	s.promise.heard(e.Stdout)
	if err := s.check(ctx); err != nil {
		return out.Hit, fmt.Errorf("%w\nafter: %s", err, e)
	}
	return out.Hit, nil
}

// traced runs a command under the tracer.
func (s *stage) traced(ctx context.Context, plan trace.Plan, args []string) (trace.Outcome, ended, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := s.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	plan.Under = s.home
	out, err := trace.Run(cmd, plan)
	e := ended{Args: args, Code: out.Code, Signal: out.Signal, Stdout: stdout.Bytes(), Stderr: stderr.String()}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("does not end: %s", e)
	}
	return out, e, err
}
