package steps

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// Put returns the command uwf step put.
func (a Commands) Put() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "put", Usage: "store the answer of this step and print the result line",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Usage: "`FILE` answer that begins with the role's frontmatter; - reads stdin", Required: true},
			&ucli.StringFlag{Name: "detail", Usage: "`FILE` JSON record of the work inside the step (default the announced turns)"},
			&ucli.StringFlag{Name: "session", Usage: "`ID` session of the agent, for a later visit"},
			&ucli.StringFlag{Name: "usage", Usage: "`JSON` tokens and cost of the step"},
			&ucli.BoolFlag{Name: "final", Usage: "let a model extract the data if the answer does not match the schema"},
			&ucli.StringFlag{Name: "agent", Usage: "`NAME` name of the agent (default its alias, else its program)"},
		},
	}, a.stepPut)
}

func (a Commands) stepPut(ctx context.Context, c *ucli.Context) error {
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	if as.agent == "" {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		as.command = e.Reader.LastCommand(as.Thread)
	}
	answer, err := a.readInput(c.String("output"))
	if err != nil {
		return err
	}
	answer = a.Secrets().Hide(answer) // as agentkit does
	sub, turns, err := a.submission(c, as, answer)
	if err != nil {
		return err
	}
	t, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	if protocol.IsEngine(sub.Agent) {
		return cmdline.UsageError("--agent "+sub.Agent+" is reserved for the engine", "uwf step put … --agent <name of the program>")
	}
	sub.Type, sub.Prompt = brief.Role.Frontmatter, prompt.Full(brief.Parts)
	if err := a.extract(ctx, c.Bool("final"), answer, brief, &sub); err != nil {
		return errors.Join(err, a.reportRejection(as, err))
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

// extract extracts the output from the answer. If that fails and no better answer will come, the model from
// the config extracts it.
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
	read, alias, usage, err := a.extractByModel(ctx, answer, brief, role)
	if err != nil || alias == "" {
		return errors.Join(refused, err)
	}
	var b protocol.Bill
	b.Add(sub.Usage)
	b.Add(usage)
	sub.Output, sub.ExtractedBy, sub.Usage = read, protocol.ByLLM, b.Usage()
	return nil
}

// reportRejection prints why an answer was rejected as the result of a failed agent: if the agent gives up now,
// the step reports this reason and not the end of the text meant for the model.
func (a Commands) reportRejection(as assignment, refused error) error {
	var bad *extract.InvalidError
	if !errors.As(refused, &bad) {
		return nil
	}
	why := fmt.Sprintf("invalid answer of role %s: %s", as.Role, bad)
	return render.Print(a.Env.Stdout, render.JSON, protocol.Result{Role: as.Role, Error: why}, nil)
}

// detailFile is the value of --detail, with inline turns.
type detailFile struct {
	Model        string          `json:"model"`
	AgentVersion string          `json:"agentVersion"`
	Outcome      string          `json:"outcome"`
	DurationMs   int64           `json:"durationMs"`
	Turns        []protocol.Turn `json:"turns"`
}

// submission builds the step from the flags; turns are those in --detail.
func (a Commands) submission(c *ucli.Context, as assignment, answer string) (step.Submission, []protocol.Turn, error) {
	now := a.Env.Now().UnixMilli()
	sub := step.Submission{
		Role: as.Role, Agent: agentName(c.String("agent"), as.agent, as.command), SessionID: c.String("session"),
		EdgePrompt: as.EdgePrompt, Cwd: as.Cwd, RunDir: as.runDir, Answer: answer, ExtractedBy: protocol.ByFrontmatter,
		StartedAtMs: as.startedMs, CompletedAtMs: now, LimitBase: as.limitBase,
		Snapshot: a.Env.Get(protocol.EnvSnapshot), Environ: a.Env.Environ, Warn: func(text string) { a.Warnf("%s", plaintext.Line(text)) },
	}
	if sub.StartedAtMs == 0 || sub.StartedAtMs > now { // unknown, or the clock was set back
		sub.StartedAtMs = now
	}
	if sub.SessionID == "" {
		sub.SessionID = as.Thread + "-" + as.Role
	}
	if v := c.String("usage"); v != "" {
		sub.Usage = &protocol.Usage{DurationMs: now - sub.StartedAtMs}
		if err := strictJSON([]byte(v), sub.Usage); err != nil {
			return sub, nil, cmdline.Invalid(fmt.Sprintf("invalid --usage: %v", err), `--usage '{"turns":1,"inputTokens":100,"outputTokens":20}'`)
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
			return sub, nil, cmdline.Invalid(fmt.Sprintf("invalid --detail %s: %v", file, err), "uwf guide adapter")
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

// extractAnswer converts the answer to data. An error is a text for the model.
func extractAnswer(ctx context.Context, answer string, role extract.Role) (extract.Output, error) {
	out, err := extract.Text(ctx, answer, role)
	var bad *extract.InvalidError
	if errors.As(err, &bad) {
		return out, &protocol.Error{Code: protocol.CodeInvalid, Message: prompt.Correction(bad.Error(), role.Schema), Err: err}
	}
	return out, err
}

// addTurns adds the turns in --detail, or else those that were announced.
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

// addAnnounced adds the announced turns to the batch, which makes them durable, followed by the answer unless
// it was announced, because the detail must contain it.
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

// strictJSON decodes one JSON value and rejects unknown fields and anything that exactjson rejects, because a
// misspelled field would be lost silently.
func strictJSON(data []byte, into any) error {
	if err := exactjson.Check(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// assignment describes the step that the surrounding agent must make, from the engine's environment variables
// (docs/agent-protocol.md).
type assignment struct {
	step.Assignment
	head      cas.Hash
	runDir    string
	limitBase int
	agent     string   // its alias, or ""
	command   []string // as configured; nil if unknown
	startedMs int64    // 0 if unknown
}

// assignment reads the environment. role overrides UWF_ROLE if set.
func (a Commands) assignment(ctx context.Context) (assignment, error) {
	head := cas.Hash(a.Env.Get(protocol.EnvHead))
	if head == "" {
		return assignment{}, cmdline.UsageError(protocol.EnvHead+" is not set; only agents started by uwf can run this command",
			"to start your program as an agent: uwf thread step <thread> --agent <your-program>")
	}
	as := assignment{
		Assignment: step.Assignment{
			Thread: a.Env.Get(protocol.EnvThread), Role: a.Env.Get(protocol.EnvRole), Cwd: a.Env.Dir,
			Artifacts: a.Env.Get(protocol.EnvArtifacts),
		},
		head: head, runDir: a.Env.Get(protocol.EnvRunDir), agent: a.Env.Get(protocol.EnvAgent),
	}
	if as.Role == "" {
		return as, cmdline.UsageError(protocol.EnvRole+" is not set", "export "+protocol.EnvRole+"=<role>")
	}
	if v := a.Env.Get(protocol.EnvLimitBase); v != "" {
		n, err := term.Natural(v)
		if err != nil {
			return as, cmdline.UsageError(fmt.Sprintf("%s: %v", protocol.EnvLimitBase, err), "unset "+protocol.EnvLimitBase)
		}
		as.limitBase = n
	}
	if err := a.readEdgePrompt(ctx, &as); err != nil {
		return as, err
	}
	if began := runfiles.Dir(as.runDir).Record().StartTime(); !began.IsZero() {
		as.startedMs = began.UnixMilli()
	}
	return as, nil
}

func (a Commands) readEdgePrompt(ctx context.Context, as *assignment) error {
	ref := cas.Hash(a.Env.Get(protocol.EnvPrompt))
	if ref == "" {
		return nil
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	text, err := cas.Read[protocol.Text](ctx, s, ref)
	if err != nil {
		return fmt.Errorf("edge prompt %s: %w", ref, err)
	}
	as.EdgePrompt = string(text)
	return nil
}

// announced returns the turns that this run has announced on its stdout so far.
func (as assignment) announced(ctx context.Context) ([]cas.Hash, error) {
	if as.runDir == "" {
		return nil, nil
	}
	reported, err := agentproc.Announced(ctx, as.runDir)
	return reported.Turns, err
}

// brief opens the thread at the head and builds the role's prompt.
func (a Commands) brief(ctx context.Context, as assignment) (*thread.Thread, step.Brief, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, step.Brief{}, err
	}
	r := cas.Recalling(s)
	t, err := thread.Open(ctx, r, as.head)
	if err != nil {
		return nil, step.Brief{}, fmt.Errorf("%s %s: %w", protocol.EnvHead, as.head, err)
	}
	b, err := step.NewBrief(ctx, r, t, as.Assignment)
	var unknown *step.RoleError
	if errors.As(err, &unknown) {
		return nil, b, cmdline.NotFound(unknown.Error(), cmdline.DidYouMean(protocol.EnvRole+"=", unknown.Role, unknown.Roles)...)
	}
	return t, b, err
}

// agentName returns the agent's name in the step node.
func agentName(flag, alias string, command []string) string {
	switch {
	case flag != "":
		return protocol.AgentName(flag)
	case alias != "":
		return protocol.AgentName(filepath.Base(alias))
	}
	return protocol.AgentName(programName(command))
}

// programName returns the readable name of a program: greet for "./greet.sh" and for "sh greet.sh".
func programName(command []string) string {
	name := func(word string) string {
		base := filepath.Base(word)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	switch {
	case len(command) == 0 || name(command[0]) == "":
		return "exec"
	case len(command) > 1 && isInterpreter(name(command[0])) && !strings.HasPrefix(command[1], "-") && name(command[1]) != "":
		return name(command[1])
	}
	return name(command[0])
}

func isInterpreter(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "pwsh", "python", "python3", "node", "bun", "ruby", "perl"}, name)
}

// Turn returns the command uwf step turn.
func (a Commands) Turn() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "turn", Usage: "store a turn while the step runs",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "role", Usage: "`ROLE` author of the turn: system, user, assistant or tool", Value: string(protocol.TurnAssistant)},
			&ucli.StringFlag{Name: "content", Usage: "`FILE` text of the turn; - reads stdin", Required: true},
			&ucli.StringFlag{Name: "tool-calls", Usage: "`JSON` tool calls of the model: [{\"id\":…,\"name\":…,\"args\":…}]"},
			&ucli.StringFlag{Name: "tool-call-id", Usage: "`ID` tool call that this turn answers"},
		},
	}, a.stepTurn)
}

func (a Commands) stepTurn(ctx context.Context, c *ucli.Context) error {
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	content, err := a.readInput(c.String("content"))
	if err != nil {
		return err
	}
	turn := protocol.Turn{
		Role: protocol.TurnRole(c.String("role")), Content: a.Secrets().Hide(content),
		ToolCallID: c.String("tool-call-id"), AtMs: a.Env.Now().UnixMilli(),
	}
	if v := c.String("tool-calls"); v != "" {
		if err := strictJSON([]byte(a.Secrets().Hide(v)), &turn.ToolCalls); err != nil {
			return cmdline.Invalid(fmt.Sprintf("--tool-calls: %v", err))
		}
	}
	earlier, err := as.announced(ctx)
	if err != nil {
		return err
	}
	turn.Index = len(earlier)
	if err := turn.Validate(); err != nil {
		return cmdline.UsageError(err.Error())
	}
	return a.putTurn(ctx, turn)
}

// putTurn stores a turn so that it is readable at once. It becomes durable with its step.
func (a Commands) putTurn(ctx context.Context, turn protocol.Turn) error {
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, a.Env.Now)
	h, err := step.AddTurn(ctx, b, turn)
	if err != nil {
		return err
	}
	if err := b.Put(ctx); err != nil {
		return err
	}
	return render.Print(a.Env.Stdout, render.JSON, protocol.NewTurnLine(h), nil)
}

// readInput reads a file given by an agent, or stdin for "-".
func (a Commands) readInput(name string) (string, error) {
	if name == "-" {
		data, err := io.ReadAll(a.Env.Stdin)
		if err != nil {
			return "", fmt.Errorf("read stdin: %w", err)
		}
		return string(data), nil
	}
	data, err := os.ReadFile(a.Env.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", cmdline.NoFile(a.Env.Dir, name, "to read stdin: -")
	}
	if err != nil {
		return "", cmdline.NotFound(fmt.Sprintf("cannot read %s: %v", name, err))
	}
	return string(data), nil
}

// Extract returns the command uwf step extract.
func (a Commands) Extract() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "extract", Usage: "extract the role's data from an answer with a model",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "output", Usage: "`FILE` answer; - reads stdin", Required: true},
		},
	}, a.stepExtract)
}

func (a Commands) stepExtract(ctx context.Context, c *ucli.Context) error {
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	answer, err := a.readInput(c.String("output"))
	if err != nil {
		return err
	}
	_, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	role, err := extract.NewRole(brief.Schema)
	if err != nil {
		return err
	}
	out, alias, usage, err := a.extractByModel(ctx, a.Secrets().Hide(answer), brief, role)
	switch {
	case alias == "" && err == nil:
		return cmdline.Invalid("no model for extraction in config.yaml", "uwf config set modelOverrides.extract <alias>")
	case usage == nil:
		return err
	}
	extraction := protocol.Extraction{Value: out.Value, Model: alias, Usage: usage}
	if err != nil {
		extraction.Value, extraction.Error = nil, err.Error()
	}
	return errors.Join(err, render.Print(a.Env.Stdout, render.JSON, extraction, nil))
}

// extractByModel has the model from the config extract the data. alias is "" if there is none.
func (a Commands) extractByModel(ctx context.Context, answer string, brief step.Brief, role extract.Role) (
	out extract.Output, alias string, usage *protocol.Usage, err error,
) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return out, "", nil, err
	}
	c, err := e.Reader.Config(ctx)
	if err != nil {
		return out, "", nil, err
	}
	if alias = config.ExtractModel(c); alias == "" {
		return out, "", nil, nil
	}
	out, usage, err = modelcall.ExtractData(ctx, e.Reader.Env, c, alias, brief.Role.ExtractPrompt, answer, role)
	return out, alias, usage, err
}

// Prompt returns the command uwf step prompt.
func (a Commands) Prompt() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "prompt", Usage: "print the prompt of this step",
		Flags: []ucli.Flag{
			term.OneOf(ucli.StringFlag{
				Name: "part", Usage: "`PART` part to print: all, system (constant for a role) or user (the rest)", Value: "all",
			}, "all", "system", "user"),
		},
	}, a.stepPrompt)
}

func (a Commands) stepPrompt(ctx context.Context, c *ucli.Context) error {
	part := map[string]func(prompt.Parts) string{"all": prompt.Full, "system": prompt.System, "user": prompt.User}[c.String("part")]
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	_, brief, err := a.brief(ctx, as)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Env.Stdout, part(brief.Parts)+"\n")
	return err
}
