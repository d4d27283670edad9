// Command embed runs a workflow on uwf's engine, as described in the package documentation of engine.
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
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

func main() { os.Exit(host.Main("embed", run)) }

func run(ctx context.Context, process env.Env) error {
	if len(process.Args) != 2 {
		return errors.New("usage: embed <workflow.yaml> <task>")
	}
	e, err := host.Open(ctx, process, host.Options{Events: func(ev engine.Event) {
		if ev.Kind == engine.Turn && ev.Turn.Role == protocol.TurnAssistant {
			fmt.Fprintf(process.Stdout, "%s: %s\n", ev.Step.Role, strings.TrimSpace(ev.Turn.Content))
		}
	}})
	if err != nil {
		return err
	}
	task := protocol.Start{Prompt: process.Args[1], Cwd: process.Dir}
	started, err := catalog.Of(e).Start(ctx, e, process.Args[0], task, engine.StartOptions{})
	if err != nil {
		return err
	}
	answers := bufio.NewScanner(process.Stdin)
	for work := (engine.Work{}); ; work = (engine.Work{Do: engine.DoResume, Prompt: answers.Text()}) {
		outs, err := e.Do(ctx, started.Thread, work) // to the end, or until a person is needed
		if err != nil {
			return err
		}
		asked := outs[len(outs)-1].Question
		if asked == nil {
			break
		}
		fmt.Fprintf(process.Stdout, "%s asks: %s\n", asked.Role, asked.Text)
		if !answers.Scan() {
			return fmt.Errorf("thread %s waits for an answer", started.Thread)
		}
	}
	trace, err := view.TraceOf(ctx, e, started.Thread)
	if err == nil {
		fmt.Fprintln(process.Stdout, trace.Status, strings.Join(trace.Path(), " → "))
	}
	return err
}
