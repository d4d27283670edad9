// Command embed starts, follows, answers and reads a thread on uwf's engine: see docs/embedding.md.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

func main() { os.Exit(host.Main(embed)) }

func embed(ctx context.Context, process env.Env) int {
	failed := func(what ...any) int { fmt.Fprintln(process.Stderr, what...); return 1 }
	if len(process.Args) != 2 {
		return failed("usage: embed <workflow.yaml> <task>")
	}
	e, err := host.Open(ctx, process, host.Options{Events: func(ev engine.Event) {
		if ev.Kind == engine.StepStarted {
			fmt.Fprintln(process.Stdout, ev.Step.Number, ev.Step.Role)
		} else if ev.Kind == engine.Turn && ev.Turn.Role == protocol.TurnAssistant {
			fmt.Fprintln(process.Stdout, " ", strings.TrimSpace(ev.Turn.Content))
		}
	}})
	if err != nil {
		return failed(err)
	}
	start := protocol.Start{Prompt: process.Args[1], Cwd: process.Dir}
	started, err := catalog.Of(e).Start(ctx, e, process.Args[0], start, engine.StartOptions{}, nil)
	if err != nil {
		return failed(err)
	}
	answers := bufio.NewScanner(process.Stdin)
	for work := (engine.Work{}); ; work = (engine.Work{Do: engine.DoResume, Prompt: answers.Text()}) {
		outs, err := e.Do(ctx, started.Thread, work) // until the end, or until a person is needed
		if err != nil {
			return failed(err)
		}
		asks := outs[len(outs)-1].Question
		if asks == nil {
			break
		} else if fmt.Fprintf(process.Stdout, "%s asks: %s\n", asks.Role, asks.Text); !answers.Scan() {
			return failed("thread", started.Thread, "waits for an answer")
		}
	}
	trace, err := view.TraceOf(ctx, e, started.Thread)
	if err != nil {
		return failed(err)
	}
	fmt.Fprintln(process.Stdout, strings.Join(trace.Path(), " → "))
	return 0
}
