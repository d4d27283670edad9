package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Put is uwf step put.
func (a Commands) Put() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "put", Usage: "for agents: store this step's answer, and print the result line",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Usage: "`FILE` with the answer, which begins with the role's frontmatter; - is stdin", Required: true},
			&ucli.StringFlag{Name: "detail", Usage: "JSON `FILE` with what happened inside the step (default: the announced turns)"},
			&ucli.StringFlag{Name: "session", Usage: "`ID` of the agent's session"},
			&ucli.StringFlag{Name: "usage", Usage: "what it cost, as `JSON`"},
			&ucli.BoolFlag{Name: "final", Usage: "this is the last answer: if it does not fit, extract the data with a model"},
			&ucli.StringFlag{Name: "agent", Usage: "`NAME` of the agent (default: its alias, else its program's)"},
		},
	}, a.stepPut)
}

func (a Commands) stepPut(ctx context.Context, c *ucli.Context) error {
	a.TextErrors = true
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	if as.agent == "" {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		as.command = e.LastCommand(as.Thread)
	}
	answer, err := a.readInput(c.String("output"))
	if err != nil {
		return err
	}
	answer = a.Secrets().Hide(answer) // as the kit does it
	sub, turns, err := a.submission(c, as, answer)
	if err != nil {
		return err
	}
	t, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	if protocol.IsEngine(sub.Agent) {
		return cmdline.UsageError("--agent "+sub.Agent+": under that name only the engine makes steps", "uwf step put … --agent <name of the program>")
	}
	sub.Type, sub.Prompt = brief.Role.Frontmatter, prompt.Full(brief.Parts)
	if err := a.extract(ctx, c.Bool("final"), answer, brief, &sub); err != nil {
		return errors.Join(err, a.tellEngine(as, err))
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, a.Env.Now)
	if sub.Detail.Turns, err = addTurns(ctx, b, as, turns, answer, sub.CompletedAtMs); err != nil {
		return err
	}
	result, err := step.Submit(ctx, b, t, sub)
	if err != nil {
		return err
	}
	return render.Print(a.Env.Stdout, render.JSON, result, nil)
}

// extract takes the output out of the answer. If that cannot be, and no better
// answer will come, the model of the config reads it.
func (a Commands) extract(ctx context.Context, final bool, answer string, brief step.Brief, sub *step.Submission) error {
	role, err := extract.NewRole(brief.Schema)
	if err != nil {
		return err
	}
	out, refused := extractAnswer(ctx, answer, role)
	sub.Output = out
	var bad *extract.InvalidError
	if !final || !errors.As(refused, &bad) {
		return refused
	}
	x, err := a.extractor(ctx)
	if err != nil || x.alias == "" {
		return errors.Join(refused, err)
	}
	read, usage, err := x.read(ctx, answer, brief.Role.ExtractPrompt, role)
	if err != nil {
		return errors.Join(refused, err)
	}
	var b protocol.Bill
	b.Add(sub.Usage)
	b.Add(&usage)
	sub.Output, sub.ExtractedBy, sub.Usage = read, protocol.ByLLM, b.Usage()
	return nil
}

// tellEngine prints why an answer was refused, in the form of a failed agent's
// result: should the agent give up here, the step says this, and not the end of
// the text that the model was to be sent.
func (a Commands) tellEngine(as assignment, refused error) error {
	var bad *extract.InvalidError
	if !errors.As(refused, &bad) {
		return nil
	}
	why := fmt.Sprintf("the answer is not the output of role %s: %s", as.Role, bad)
	return render.Print(a.Env.Stdout, render.JSON, protocol.Result{Role: as.Role, Error: why}, nil)
}

// detailFile is --detail: a detail whose turns are inline.
type detailFile struct {
	Model        string          `json:"model"`
	AgentVersion string          `json:"agentVersion"`
	Outcome      string          `json:"outcome"`
	DurationMs   int64           `json:"durationMs"`
	Turns        []protocol.Turn `json:"turns"`
}

// submission is what the flags say of the step; turns are those of --detail.
func (a Commands) submission(c *ucli.Context, as assignment, answer string) (step.Submission, []protocol.Turn, error) {
	now := a.Env.Now().UnixMilli()
	sub := step.Submission{
		Role: as.Role, Agent: agentName(c.String("agent"), as.agent, as.command), SessionID: c.String("session"),
		EdgePrompt: as.EdgePrompt, Cwd: as.Cwd, RunDir: as.runDir, Answer: answer, ExtractedBy: protocol.ByFrontmatter,
		StartedAtMs: as.startedMs, CompletedAtMs: now, LimitBase: as.limitBase,
		Snapshot: a.Env.Get(protocol.EnvSnapshot), Environ: a.Env.Environ, Warn: func(text string) { a.Say("uwf: warning: %s", plaintext.Line(text)) },
	}
	if sub.StartedAtMs == 0 || sub.StartedAtMs > now { // not known, or the clock has been set back since
		sub.StartedAtMs = now
	}
	if sub.SessionID == "" {
		sub.SessionID = as.Thread + "-" + as.Role
	}
	if v := c.String("usage"); v != "" {
		sub.Usage = &protocol.Usage{DurationMs: now - sub.StartedAtMs}
		if err := strictJSON([]byte(v), sub.Usage); err != nil {
			return sub, nil, cmdline.Invalid(fmt.Sprintf("--usage is no JSON object of a step's cost: %v", err), `--usage '{"turns":1,"inputTokens":100,"outputTokens":20}'`)
		}
		if err := sub.Usage.Plausible(); err != nil {
			return sub, nil, cmdline.Invalid("--" + err.Error())
		}
	}
	var detail detailFile
	if file := c.String("detail"); file != "" {
		text, err := a.readInput(file)
		if err != nil {
			return sub, nil, err
		}
		if err := strictJSON([]byte(a.Secrets().Hide(text)), &detail); err != nil {
			return sub, nil, cmdline.Invalid(fmt.Sprintf("--detail %s is no JSON object of a step's turns: %v", file, err), "uwf guide adapter tells what it has")
		}
	}
	for i, t := range detail.Turns {
		if err := t.Usage.Plausible(); err != nil {
			return sub, nil, cmdline.Invalid(fmt.Sprintf("--detail: turn %d: %v", i, err))
		}
	}
	sub.Detail = protocol.Detail{
		Model: detail.Model, AgentVersion: detail.AgentVersion, Outcome: detail.Outcome, DurationMs: detail.DurationMs,
	}
	return sub, detail.Turns, nil
}

// extractAnswer turns the answer into data. If it does not fit, the error is
// the text that a model can be sent.
func extractAnswer(ctx context.Context, answer string, role extract.Role) (extract.Output, error) {
	out, err := extract.Text(ctx, answer, role)
	var bad *extract.InvalidError
	if errors.As(err, &bad) {
		return out, &protocol.Error{Code: protocol.CodeInvalid, Message: prompt.Correction(bad.Error(), role.Schema), Err: err}
	}
	return out, err
}

// addTurns adds the turns of --detail, else those that were announced.
func addTurns(ctx context.Context, b *cas.Batch, as assignment, turns []protocol.Turn, answer string, nowMs int64) ([]cas.Hash, error) {
	var hashes []cas.Hash
	for i, t := range turns {
		t.Index = i
		if t.AtMs == 0 {
			t.AtMs = nowMs
		}
		h, err := step.AddTurn(ctx, b, t)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h)
	}
	if turns != nil {
		return hashes, nil
	}
	return addAnnounced(ctx, b, as, answer, nowMs)
}

// addAnnounced takes the announced turns into the batch, which makes them
// durable, and the answer behind them unless it was announced itself: what a
// role says must be in its detail.
func addAnnounced(ctx context.Context, b *cas.Batch, as assignment, answer string, nowMs int64) ([]cas.Hash, error) {
	announced, err := as.announced(ctx)
	if err != nil || len(announced) == 0 {
		return nil, err
	}
	var hashes []cas.Hash
	last := ""
	for _, h := range announced {
		t, err := cas.Read[protocol.Turn](ctx, b, h)
		if err != nil {
			return nil, fmt.Errorf("announced turn: %w", err)
		}
		if h, err = b.Add(ctx, t); err != nil {
			return nil, err
		}
		hashes, last = append(hashes, h), t.Content
	}
	if strings.TrimSpace(last) == strings.TrimSpace(answer) {
		return hashes, nil
	}
	h, err := step.AddTurn(ctx, b, protocol.Turn{
		Index: len(hashes), Role: protocol.TurnAssistant, Content: answer, AtMs: nowMs,
	})
	return append(hashes, h), err
}

// strictJSON reads one JSON value without unknown fields: a misspelt field
// would be lost silently, and so would what exactjson refuses.
func strictJSON(data []byte, into any) error {
	if err := exactjson.Check(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
