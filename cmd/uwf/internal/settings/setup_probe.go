package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// probeWorkflow is one role that answers one question.
const probeWorkflow = `name: setup-probe
description: One role answers one question. uwf setup makes such a run.
roles:
  probe:
    description: Answers a question.
    goal: You answer one question in one sentence, from what you know. You use no tools.
    capabilities: []
    procedure: Answer at once.
    output: The answer, in one sentence.
    frontmatter:
      type: object
      properties: { $status: { const: done }, answer: { type: string } }
      required: [$status, answer]
graph:
  $START: { _: { role: probe, prompt: "{{{$prompt}}}" } }
  probe: { done: { role: $END, prompt: "{{{answer}}}" } }
`

const (
	probeQuestion = "Who are you? Say in one sentence which model or program you are."
	probeTime     = 3 * time.Minute
)

// probe lets an agent answer one question, in a thread of its own and a directory that
// holds nothing. The thread is removed: nobody would go on with it, or count it.
func (a Commands) probe(ctx context.Context, agent string) *protocol.SetupProbe {
	a.Say("asking %s one question …", agent)
	p := &protocol.SetupProbe{}
	id, err := a.runProbe(ctx, p)
	if id != "" {
		if err := a.forget(context.WithoutCancel(ctx), id); err != nil {
			a.Say("uwf: warning: thread %s of this question stays: %v", id, err)
		}
	}
	if err == nil {
		p.OK = true
		return p
	}
	coded := app.Classify(err)
	p.Error = coded.Message
	for _, hint := range coded.Hints {
		if id == "" || !strings.Contains(hint, id) {
			p.Hints = append(p.Hints, hint)
		}
	}
	return p
}

// forget ends a thread and removes it.
func (a Commands) forget(ctx context.Context, id string) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if at, err := e.Show(ctx, id); err == nil && at.Status != protocol.StatusCompleted {
		if err := e.Kill(ctx, id); err != nil {
			return err
		}
	}
	_, err = prune.Run(ctx, prune.Options{Home: e.Dirs.Home, Now: a.Env.Now(), Threads: []string{id}})
	return err
}

func (a Commands) runProbe(ctx context.Context, p *protocol.SetupProbe) (id string, err error) {
	dir, err := os.MkdirTemp("", "uwf-setup-")
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return id, err
	}
	file := filepath.Join(dir, "setup-probe.yaml")
	if err := os.WriteFile(file, []byte(probeWorkflow), 0o600); err != nil {
		return id, err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return id, err
	}
	o := engine.StepOptions{Timeout: probeTime}
	started, err := a.Workflows().Start(ctx, e, file, protocol.Start{Prompt: probeQuestion, Cwd: dir}, engine.StartOptions{},
		func(s *protocol.Start) error { return e.CheckFirst(ctx, *s, o) })
	if err != nil {
		return id, err
	}
	id = started.Thread
	results, err := e.Do(ctx, started.Thread, engine.Work{Steps: engine.UntilEnd, StepOptions: o})
	if err != nil {
		return id, err
	}
	last := results[len(results)-1]
	if last.Status != protocol.StatusCompleted {
		return id, fmt.Errorf("the run is %s: %s", last.Status, app.StatusText(last))
	}
	step, err := cas.Read[protocol.Step](ctx, e.Store, last.Head)
	if err != nil {
		return id, err
	}
	output, err := e.Store.Get(ctx, step.Output)
	if err != nil {
		return id, err
	}
	value, err := output.Value()
	if err != nil {
		return id, err
	}
	fields, _ := value.(map[string]any)
	p.Answer, _ = fields["answer"].(string)
	return id, nil
}
