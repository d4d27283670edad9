// Package builtin is our own agents as a library: the loop of package react,
// with the tools of package tools, on the model that the config names.
//
//	func main() { agentkit.Run(builtin.Options()) }
//
// The workspace is the directory that the agent is started in. A role that has
// its turn again goes on in its conversation, also in another process, and so
// does a try that was killed. Everything that a run asks, says and does becomes
// a node as it happens; no node holds a key.
package builtin

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// kind is what an agent is like.
type kind struct {
	name     string
	tools    bool
	resolves bool // ended by the tool resolve instead of a text
}

var (
	textKind  = kind{name: "builtin", tools: true}
	reactKind = kind{name: "react", tools: true, resolves: true}
	llmKind   = kind{name: "llm"}
)

const usageModel = `
  --model ALIAS        a model of config.yaml instead of the one configured for the role
`

const usageCommands = `
builtin.allowCommands in config.yaml lets it run commands: those listed, or any with "*".
`

// Options describe uwf-builtin: it works with tools and ends with a text. More
// tools are added to its own.
func Options(more ...tools.Tool) agentkit.Options {
	return options(textKind, more, "Works with its own tools on an OpenAI-compatible endpoint.\n"+usageModel+usageCommands)
}

// ReactOptions describe uwf-react: it works with tools and ends by calling
// resolve with the role's output.
func ReactOptions(more ...tools.Tool) agentkit.Options {
	return options(reactKind, more, "Works with its own tools on an OpenAI-compatible endpoint, and ends by calling the\n"+
		"tool \"resolve\" with the role's output: no frontmatter, no extraction.\n"+usageModel+usageCommands)
}

// LLMOptions describe uwf-llm: one question, no tools.
func LLMOptions() agentkit.Options {
	return options(llmKind, nil, "Puts one question to an OpenAI-compatible endpoint. It has no tools.\n"+usageModel)
}

func options(k kind, more []tools.Tool, usage string) agentkit.Options {
	a := &agent{kind: k, more: more}
	return agentkit.Options{
		Name: k.name, Usage: usage, ParseArgs: a.parseArgs, Structured: k.resolves,
		Run: a.run, Continue: a.resume, Resumes: true, CopiesSessions: true,
		Dispatch: bind.Dispatch,
	}
}

// agent is an agent with what its command line says.
type agent struct {
	kind
	model string // alias; "": as configured
	more  []tools.Tool
}

// run does the role's work.
func (a *agent) run(ctx context.Context, req *agentkit.Request) (res agentkit.Result, err error) {
	w, err := a.open(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	session, err := w.begin(ctx)
	if err != nil {
		return agentkit.Result{}, err
	}
	if err := req.Began(session.ID); err != nil {
		return agentkit.Result{}, err
	}
	answer, res, err := w.play(ctx, w.loop(ctx), session)
	if reason := w.pause(answer, err); reason != "" && !(req.Yields && err != nil) {
		res.Suspend = reason
		_ = errors.As(err, &res.Limit)
		return res, nil
	}
	w.deliver(&res, answer)
	return res, err
}

// resume lets the model correct an answer. It may look things up for that, but
// change nothing: models that are offered their tools go on with the work
// instead of answering.
func (a *agent) resume(ctx context.Context, sessionID, message string, req *agentkit.Request) (res agentkit.Result, err error) {
	w, err := a.open(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	session, err := w.sessions.Open(sessionID)
	if err != nil {
		return agentkit.Result{}, err
	}
	if err := session.Add(llm.User(message)); err != nil {
		return agentkit.Result{}, err
	}
	w.told = session.Messages[len(session.Messages)-1:]
	loop := w.loop(ctx)
	loop.Turns, loop.ReadOnly = w.continueTurns, true
	answer, res, err := w.play(ctx, loop, session)
	w.deliver(&res, answer)
	return res, err
}

// deliver puts the answer into the result.
func (w *work) deliver(res *agentkit.Result, answer react.Answer) {
	if w.kind.resolves && answer.Outcome == react.Done {
		res.Value = answer.Value
		return
	}
	res.Output = answer.Text
}

// play runs the loop and accounts for it.
func (w *work) play(ctx context.Context, loop react.Loop, session *react.Session) (react.Answer, agentkit.Result, error) {
	if err := w.record.begin(ctx, w, loop, session); err != nil {
		return react.Answer{}, agentkit.Result{SessionID: session.ID}, err
	}
	began := w.run.Env.Now()
	answer, err := loop.Run(ctx, session)
	err = w.failure(w.advise(err))
	took := w.run.Env.Now().Sub(began).Milliseconds()
	model := answer.Model
	if model == "" {
		model = w.endpoint.Model
	}
	err = errors.Join(err, w.record.end(context.WithoutCancel(ctx), answer, err))
	bill := w.tried
	bill.AddAll(answer.Bill)
	usage := bill.Usage()
	if bill.Parts == 0 && err != nil {
		usage = &protocol.Usage{} // the model has not replied: that costs nothing
	}
	if usage != nil {
		usage.DurationMs = w.tried.AtLeast.DurationMs + took
	}
	outcome := string(answer.Outcome)
	if w.ofRun(answer) {
		outcome += "; " + protocol.OutcomeOfRun
	}
	return answer, agentkit.Result{
		SessionID: session.ID,
		Usage:     usage,
		Detail: &protocol.Detail{
			Model: model, Outcome: outcome, DurationMs: took, Requests: w.record.texts,
		},
	}, err
}
