// Command embed runs a workflow on uwf's engine, as any program could: it starts a
// thread from a file, shows what its agents do while they do it, asks whoever sits
// there when a role needs a person, and prints the way that the thread took.
//
//	embed <workflow.yaml> <task>    # see docs/embedding.md
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

func main() {
	ctx, stop := proc.WithSignals(context.Background())
	defer stop()
	process, err := env.OS()
	if err == nil {
		err = run(ctx, process)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, process env.Env) error {
	if len(process.Args) != 2 {
		return errors.New("usage: embed <workflow.yaml> <task>")
	}
	e, err := engine.Open(ctx, process, engine.Options{})
	if err != nil {
		return err
	}
	e.Events = func(ev engine.Event) {
		switch {
		case ev.Kind == engine.StepStarted:
			fmt.Fprintf(process.Stdout, "%d %s\n", ev.Step.Number, ev.Step.Role)
		case ev.Kind == engine.Turn && ev.Turn.Role == protocol.TurnAssistant:
			fmt.Fprintf(process.Stdout, "  %s\n", strings.TrimSpace(ev.Turn.Content))
		}
	}
	started, err := catalog.Of(e).Start(ctx, e, process.Args[0], protocol.Start{Prompt: process.Args[1], Cwd: process.Dir}, engine.StartOptions{}, nil)
	if err != nil {
		return err
	}
	answers := bufio.NewScanner(process.Stdin)
	for work := (engine.Work{}); ; { // steps until the end, or until a person is needed
		outs, err := e.Do(ctx, started.Thread, work)
		if err != nil {
			return err
		}
		now := outs[len(outs)-1]
		if now.Status != protocol.StatusSuspended {
			break
		}
		fmt.Fprintf(process.Stdout, "%s asks: %s\n", string(now.SuspendedRole), string(now.SuspendMessage))
		if !answers.Scan() {
			return fmt.Errorf("thread %s waits for an answer", started.Thread)
		}
		work = engine.Work{Do: engine.DoResume, Prompt: answers.Text()}
	}
	trace, err := view.TraceOf(ctx, e, started.Thread)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(process.Stdout, strings.Join(trace.Path(), " → "))
	return err
}
