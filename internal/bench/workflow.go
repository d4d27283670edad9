package main

import (
	"context"
	"os"

	"github.com/united-workforce/uwf/internal/bench/loop"
)

// scenarioYAML is what the agent of most rows plays.
const scenarioYAML = `repeat: true
steps:
  - role: worker
    output: "---\n$status: again\nnote: a note\n---\nI did something.\n"
`

// file writes a file of the fixtures once.
func (b *bench) file(name, text string) (string, error) {
	return fixture(b, "file "+name, func() (string, error) {
		return b.path(name), os.WriteFile(b.path(name), []byte(text), 0o644)
	})
}

// start starts a thread in a home and returns its id.
func (b *bench) start(ctx context.Context, home string) (string, error) {
	workflow, err := b.file("loop.yaml", loop.Workflow)
	if err != nil {
		return "", err
	}
	return b.uwf(ctx, home, "thread", "start", workflow, "-p", "task", "--cwd", b.dir, "--format", "text")
}

// agent is the command line of an agent that plays the script at once.
func (b *bench) agent() (string, error) {
	scenario, err := b.file("scenario.yaml", scenarioYAML)
	return b.program("uwf-mock") + " --mock-data " + scenario, err
}

// step makes one step.
func (b *bench) step(ctx context.Context, p place) error {
	agent, err := b.agent()
	if err != nil {
		return err
	}
	_, err = b.uwf(ctx, p.home, "thread", "step", p.thread, "--agent", agent)
	return err
}

// commandsYAML is a loop of one role that is a command.
const commandsYAML = `name: commands
description: Runs a command again and again.
limits: { maxSteps: 1000000 }
roles: { go: { description: Goes., run: [%q] } }
graph: { $START: { _: go }, go: { passed: go, failed: $END } }
`
