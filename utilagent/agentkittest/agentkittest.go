// Package agentkittest runs an agent as the engine would, on a home and a store
// in a temporary directory, and reads back what it left.
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

// Scenario is the thread that an agent finds. The zero value is a thread with
// one role, "worker", that has not been stepped.
type Scenario struct {
	// Workflow; nil: one with the role. A role without Frontmatter gets Schema.
	Workflow *protocol.Workflow
	Role     string // the role to play; "": "worker"
	// Schema of the role's output as a JSON value; nil: an object with a
	// "$status" of done or failed, and an optional text "summary".
	Schema any

	Task       string    // the thread's prompt
	EdgePrompt string    // "": the role's description
	History    []History // oldest first

	Config  string   // content of config.yaml; "": there is none
	Args    []string // the agent's own arguments
	Environ []string // KEY=value, over the process's environment
	Named   bool     // thread, role and prompt are passed by name
	ByHand  bool     // without the engine's variables, as a person would start it
}

// History is a step that was made before.
type History struct {
	Role    string // "": the scenario's role
	Agent   string // "": "past"
	Output  any    // nil: {"$status": "done"}
	Content string // the agent's answer
	Session string // "": "past"
}

// Run makes a thread and lets an agent make a step of it.
func Run(t testing.TB, o agentkit.Options, s Scenario) *Outcome {
	t.Helper()
	return New(t, s).Run(o)
}

// Run lets an agent make a step in this process. If it succeeds, the thread's
// head moves, so that the next Run is the next step.
func (th *Thread) Run(o agentkit.Options) *Outcome {
	th.t.Helper()
	return th.RunContext(th.ctx(), o)
}

// RunContext is Run for an agent that ctx may interrupt.
func (th *Thread) RunContext(ctx context.Context, o agentkit.Options) *Outcome {
	th.t.Helper()
	return th.Play(func(p agentkit.Process) int { return agentkit.Main(ctx, p, o) })
}

// Play is Run for an agent that is started in another way, such as a process of
// its own. The function gets what the agent should see of the world, with standard
// streams that are read afterwards, and returns its exit status.
func (th *Thread) Play(agent func(agentkit.Process) int) *Outcome {
	th.t.Helper()
	var stdout, stderr buffer
	p := th.Process()
	p.Stdout, p.Stderr = &stdout, &stderr
	code := agent(p)
	return th.read(code, stdout.String(), stderr.String())
}

// Process is what an agent sees of the world, without its output streams.
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
