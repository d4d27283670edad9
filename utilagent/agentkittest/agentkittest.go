// Package agentkittest runs an agent as the engine would, with a home and a store in a temporary directory,
// and reads back the result.
//
//	got := agentkittest.Run(t, agentkit.Options{Name: "echo", Run: run}, agentkittest.Scenario{Task: "Say hello."})
//	got.Succeeded()
//	require.Equal(t, map[string]any{"$status": "done"}, got.Output)
package agentkittest

import (
	"context"
	"slices"
	"testing"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// Scenario describes the thread in which an agent runs. The zero value is a new thread with one role,
// "worker".
type Scenario struct {
	// Workflow defaults to a workflow with just the role. A role without Frontmatter gets Schema.
	Workflow *protocol.Workflow
	Role     string // the role to run; default "worker"
	// Schema is the schema of the role's output as a JSON value. The default is an object with a "$status" of
	// done or failed and an optional string "summary".
	Schema any

	Task       string    // the thread's prompt
	EdgePrompt string    // default: the role's description
	History    []History // oldest first

	Config  string   // content of config.yaml; "" writes no file
	Args    []string // the agent's own arguments
	Environ []string // KEY=value, overrides the process's environment
	Named   bool     // pass thread, role and prompt as flags
	ByHand  bool     // without the engine's variables, as a person would start it
}

// History is an earlier step.
type History struct {
	Role    string // default: the scenario's role
	Agent   string // default "past"
	Output  any    // default {"$status": "done"}
	Content string // the agent's answer
	Session string // default "past"
}

// Run creates a thread and runs an agent for one step.
func Run(t testing.TB, o agentkit.Options, s Scenario) *Outcome {
	t.Helper()
	return New(t, s).Run(o)
}

// Run runs an agent for one step in this process. If it succeeds, the thread's head moves, so the next Run
// makes the next step.
func (th *Thread) Run(o agentkit.Options) *Outcome {
	th.t.Helper()
	return th.RunContext(th.ctx(), o)
}

// RunContext is like Run but interrupts the agent when ctx is cancelled.
func (th *Thread) RunContext(ctx context.Context, o agentkit.Options) *Outcome {
	th.t.Helper()
	return th.Play(func(p agentkit.Process) int { return agentkit.Main(ctx, p, o) })
}

// Play is like Run for an agent that is started in another way, such as in a separate process. The function
// gets a Process whose output streams are captured, and returns the exit status.
func (th *Thread) Play(agent func(agentkit.Process) int) *Outcome {
	th.t.Helper()
	var stdout, stderr buffer
	p := th.Process()
	p.Stdout, p.Stderr = &stdout, &stderr
	code := agent(p)
	return th.read(code, stdout.String(), stderr.String())
}

// Process returns the agent's Process, without output streams.
func (th *Thread) Process() agentkit.Process {
	e := th.env
	for _, kv := range th.scenario.Environ {
		e.Environ = append(slices.Clip(e.Environ), kv)
	}
	e = e.With(protocol.EnvHome, th.Home).With(protocol.EnvStore, th.storeDir())
	if !th.scenario.ByHand {
		e = e.With(protocol.EnvHead, string(th.Head)).With(protocol.EnvRunDir, th.RunDir).
			With(protocol.EnvThread, th.ID).With(protocol.EnvRole, th.Role)
	}
	return agentkit.Process{Args: th.args(), Environ: e.Environ, Dir: th.Cwd}
}

func (th *Thread) args() []string {
	args := append([]string(nil), th.scenario.Args...)
	prompt := th.scenario.EdgePrompt
	if th.scenario.Named {
		args = append(args, protocol.FlagThread, th.ID, protocol.FlagRole, th.Role)
		if prompt != "" {
			args = append(args, protocol.FlagPrompt, prompt)
		}
		return args
	}
	args = append(args, th.ID, th.Role)
	if prompt != "" {
		args = append(args, protocol.FlagPromptRef, string(th.put(protocol.Text(prompt))))
	}
	return args
}

func (th *Thread) ctx() context.Context { return th.t.Context() }
