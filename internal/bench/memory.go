package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
)

// most is how much memory a process may have at its peak, in MB.
const most = 25

// memoryRows say how much memory a step takes. What the system tells of a child
// is the larger of its own peak and those of its children, so the agent is asked
// for apart.
func (b *bench) memoryRows() []row {
	what := fmt.Sprintf("%d MB", most)
	peak := func(name string, measure side) row {
		return versus(name, measure, 1, what, constant(most)).in("MB").atMost(fewest)
	}
	return []row{
		peak("peak memory of a step, uwf or agent", b.stepPeak(b.chain, 10)),
		peak("the same at 10,000 steps", b.stepPeak(b.chain, 10_000)),
		peak("the same among 100,000 threads", b.stepPeak(b.among, 100_000)),
		peak("peak memory of an agent on the kit", b.agentPeak()),
	}
}

// stepPeak costs the larger peak of the two processes of a step.
func (b *bench) stepPeak(of func(context.Context, int) (place, error), n int) side {
	return b.peak(of, n, func(ctx context.Context, p place, helper, agent string) error {
		return silent(b.command(ctx, p.home, helper, b.path("peak"), b.program("uwf"), "--quiet", "thread", "step", p.thread, "--agent", agent))
	})
}

// agentPeak costs the peak of the agent alone, in whose place the helper stands.
func (b *bench) agentPeak() side {
	return b.peak(b.chain, 10, func(ctx context.Context, p place, helper, agent string) error {
		_, err := b.uwf(ctx, p.home, "thread", "step", p.thread, "--agent", helper+" "+b.path("peak")+" "+agent)
		return err
	})
}

// peak costs what the helper notes of a step.
func (b *bench) peak(of func(context.Context, int) (place, error), n int, step func(ctx context.Context, p place, helper, agent string) error) side {
	return func(ctx context.Context) (float64, error) {
		p, err := of(ctx, n)
		if err != nil {
			return 0, err
		}
		agent, err := b.agent()
		if err != nil {
			return 0, err
		}
		helper, err := b.helper(ctx, "peak")
		if err != nil {
			return 0, err
		}
		if err := step(ctx, p, helper, agent); err != nil {
			return 0, err
		}
		return noted(b.path("peak"))
	}
}

// noted reads what the helper wrote, in MB.
func noted(path string) (float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.ParseFloat(string(text), 64)
	return bytes / (1 << 20), err
}
