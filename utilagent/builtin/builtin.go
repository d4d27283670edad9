// Package builtin is the agent uwf-builtin as a library: the loop of package
// react with the tools of package tools, on the model that the config names.
//
//	func main() { agentkit.Run(builtin.Options()) }
//
// The workspace is the directory that the agent is started in. A role that has
// its turn again goes on in its conversation, also in another process.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/react"
)

const name = "builtin"

const usage = `Works with its own tools on an OpenAI-compatible endpoint.

  --model ALIAS        a model of config.yaml instead of the one configured for the role

UWF_BUILTIN_ALLOW_SHELL=1, or builtin.allowCommands in config.yaml, lets it run commands.
`

// Options describe the agent to the kit.
func Options() agentkit.Options {
	a := &agent{}
	return agentkit.Options{
		Name: name, Usage: usage, ParseArgs: a.parseArgs,
		Run: a.run, Continue: a.resume, Resumes: true, ForksSessions: true,
		Extractor: llm.Extractor,
	}
}

// agent is what the command line says.
type agent struct {
	model string // alias; "": as configured
}

// parseArgs takes --model out of the arguments.
func (a *agent) parseArgs(args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		flag, value, attached := strings.Cut(args[i], "=")
		if flag != "--model" {
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, errors.New("--model needs the alias of a model in config.yaml")
			}
			value = args[i]
		}
		if value == "" {
			return nil, errors.New("--model is empty: name a model of config.yaml")
		}
		a.model = value
	}
	return rest, nil
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
	loop := w.loop()
	loop.Turns = w.turns
	answer, res, err := w.play(ctx, loop, session)
	if reason := w.pause(answer, err); reason != "" {
		res.Suspend = reason
		return res, nil
	}
	res.Output = answer.Text
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
	loop := w.loop()
	loop.Turns, loop.ReadOnly = w.continueTurns, true
	answer, res, err := w.play(ctx, loop, session)
	res.Output = answer.Text
	return res, err
}

// play runs the loop and accounts for it.
func (w *work) play(ctx context.Context, loop react.Loop, session *react.Session) (react.Answer, agentkit.Result, error) {
	began := w.req.Env.Now()
	answer, err := loop.Run(ctx, session)
	took := w.req.Env.Now().Sub(began).Milliseconds()
	answer.Usage.DurationMs = took
	answer.Text = withoutPreamble(answer.Text)
	model := answer.Model
	if model == "" {
		model = w.endpoint.Model
	}
	return answer, agentkit.Result{
		SessionID: session.ID,
		Usage:     &answer.Usage,
		Detail:    &protocol.Detail{Model: model, Outcome: string(answer.Outcome), DurationMs: took},
	}, err
}

// pause says why a run that is not finished should wait for a person, "" if it
// should not. Its conversation is kept, so that resuming the thread goes on.
func (w *work) pause(answer react.Answer, err error) string {
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.KindRateLimit && e.Wait > llm.LongWait {
		return fmt.Sprintf("%v. Resume the thread after that; the agent goes on where it was.", err)
	}
	if err != nil || answer.Outcome != react.MaxTurns {
		return ""
	}
	reason := fmt.Sprintf("%s has used its %d turns without a final answer. Resume the thread to give it as many again.",
		protocol.AgentName(name), w.turns)
	if said := strings.TrimSpace(answer.Text); said != "" {
		reason += " Its last words: " + cut(said, 500)
	}
	return reason
}

func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
