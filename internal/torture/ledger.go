package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// ledger is a file next to the home in which our agent records finished steps: evidence that the engine
// cannot influence.
type ledger struct{ path string }

const ledgerVariable = "TORTURE_LEDGER"

// agentPart is our own command that acts as the agent.
const agentPart = "agent"

// finish is the task that our agent completes after one step; others never end.
const finish = "finish"

// entry is a finished step: the result line is printed, and the agent exits with 0.
type entry struct{ Thread, Follows, Step string }

// entries reads the ledger.
func (l ledger) entries() ([]entry, error) {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return nil, err
	}
	var out []entry
	for line := range strings.Lines(string(text)) {
		var e entry
		if _, err := fmt.Sscan(line, &e.Thread, &e.Follows, &e.Step); err != nil {
			return nil, fmt.Errorf("ledger line %q: %w", line, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// agent is our agent: it works, prints its result, and records it in the ledger.
func agent(e env.Env) int {
	p, err := agentkit.OS()
	if err != nil {
		fmt.Fprintln(e.Stderr, "torture:", err)
		return 1
	}
	var seen bytes.Buffer
	p.Args, p.Stdout = e.Args, io.MultiWriter(p.Stdout, &seen)
	thread, follows := "", ""
	status := agentkit.Main(context.Background(), p, agentkit.Options{Name: "torture", Run: func(_ context.Context, r *agentkit.Request) (agentkit.Result, error) {
		thread, follows = r.Thread, string(r.Head)
		status := "again"
		if r.Start.Prompt == finish {
			status = "done"
		}
		return agentkit.Result{
			Output:    fmt.Sprintf("---\n$status: %s\nnote: after %s\n---\nStep %d is done.\n", status, r.Head, r.Number),
			SessionID: "torture",
		}, nil
	}})
	if status != 0 {
		return status
	}
	if err := note(e.Get(ledgerVariable), entry{thread, follows, lastStep(seen.Bytes())}); err != nil {
		fmt.Fprintln(e.Stderr, "torture: ledger:", err)
		return 1
	}
	return 0
}

// note appends an entry in one write, which is atomic. Without a path there is no ledger.
func note(path string, e entry) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, "%s %s %s\n", e.Thread, e.Follows, e.Step)
	return err
}

// lastStep returns the step in a result line.
func lastStep(stdout []byte) string {
	lines := bytes.Split(bytes.TrimSpace(stdout), []byte("\n"))
	var result struct{ StepHash string }
	if json.Unmarshal(lines[len(lines)-1], &result) != nil || result.StepHash == "" {
		return "none"
	}
	return result.StepHash
}
