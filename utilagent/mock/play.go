package mock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// EnvScenario names the scenario file if no flag does.
const EnvScenario = "UWF_MOCK_DATA"

const usage = `Plays a script instead of asking a model.

  --mock-data FILE     the script, YAML; also --scenario FILE, or ` + EnvScenario + `
`

// Main plays the mock agent in this process and returns its exit status.
func Main(process agentkit.Process) int {
	if d, ok := beGrandchild(process.Args); ok {
		time.Sleep(d)
		return 0
	}
	p := &player{env: env.Env{Environ: process.Environ, Dir: process.Dir}}
	process.Stdout = &faultyStdout{out: process.Stdout, player: p}
	code := agentkit.Main(context.Background(), process, p.options())
	if p.step.Exit != nil {
		return *p.step.Exit
	}
	return code
}

// Options is the mock agent with a given scenario, for tests in memory: of the
// faults it shows those that need no process of its own.
func Options(s Scenario) agentkit.Options {
	p := &player{scenario: s}
	o := p.options()
	o.ParseArgs = nil
	return o
}

// player plays one step.
type player struct {
	env      env.Env
	scenario Scenario
	step     Step
	index    int
	replies  int // of Continue
	calls    int // of tools
}

func (p *player) options() agentkit.Options {
	return agentkit.Options{Name: "mock", Usage: usage, ParseArgs: p.parseArgs, Run: p.run, Continue: p.correct}
}

// parseArgs finds the scenario.
func (p *player) parseArgs(args []string) (rest []string, err error) {
	file := p.env.Get(EnvScenario)
	for i := 0; i < len(args); i++ {
		if args[i] != "--mock-data" && args[i] != "--scenario" {
			rest = append(rest, args[i])
			continue
		}
		if i++; i == len(args) {
			return nil, fmt.Errorf("%s needs a file", args[i-1])
		}
		file = args[i]
	}
	if file == "" {
		return nil, errors.New("--mock-data is required")
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.env.Dir, file)
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("mock scenario: %w", err)
	}
	p.scenario, err = Parse(file, src)
	return rest, err
}

func (p *player) run(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	p.index, p.replies, p.calls = req.Number-1, 0, 0
	var err error
	if p.step, err = p.scenario.step(p.index, req.Visit, req.Role); err != nil {
		return agentkit.Result{}, err
	}
	if err := p.misbehave(ctx, req); err != nil {
		return agentkit.Result{}, err
	}
	res, err := p.play(ctx, req, p.step.Reply)
	err = errors.Join(err, runenv.Of(ctx).Published()) // a crash comes after the turns, not between them
	p.crashAt(CrashBeforeCommit)
	return res, err
}

func (p *player) correct(ctx context.Context, _, _ string, req *agentkit.Request) (agentkit.Result, error) {
	replies := p.step.Corrections
	if len(replies) == 0 {
		return p.play(ctx, req, p.step.Reply)
	}
	reply := replies[min(p.replies, len(replies)-1)]
	p.replies++
	return p.play(ctx, req, reply)
}

// play records a reply's turns and gives its answer.
func (p *player) play(ctx context.Context, req *agentkit.Request, r Reply) (agentkit.Result, error) {
	for _, t := range r.Turns {
		if err := p.turn(ctx, req, t); err != nil {
			return agentkit.Result{}, err
		}
	}
	if err := sleep(ctx, r.Delay); err != nil {
		return agentkit.Result{}, err
	}
	res := agentkit.Result{Value: asCommand(req, r.Value), Suspend: r.Suspend, Usage: r.Usage, SessionID: p.session()}
	if r.Output != nil {
		res.Output = *r.Output
	}
	res.Detail = &protocol.Detail{Model: "mock"}
	if r.Fail != "" {
		return res, errors.New(r.Fail)
	}
	if len(r.Turns) == 0 {
		return res, nil
	}
	return res, req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: answer(res)})
}

// asCommand completes what a role says that is a command: its status is enough.
func asCommand(req *agentkit.Request, value any) any {
	said, ok := value.(map[string]any)
	role := req.Workflow.Roles[req.Role]
	if !ok || role.Player() != protocol.PlayedByCommand || role.Parse != "" {
		return value
	}
	code := 0
	if said[protocol.StatusKey] == "failed" {
		code = 1
	}
	whole := map[string]any{protocol.StatusKey: "passed", "exitCode": code, "output": "", "truncated": false}
	maps.Copy(whole, said)
	return whole
}

func (p *player) session() string {
	if p.step.Session != "" {
		return p.step.Session
	}
	return fmt.Sprintf("mock-%d", p.index)
}

// turn records what an agent says or does on the way.
func (p *player) turn(ctx context.Context, req *agentkit.Request, t Turn) error {
	if err := sleep(ctx, t.Delay); err != nil {
		return err
	}
	said := protocol.Turn{Role: protocol.TurnAssistant, Content: t.Say}
	if t.Tool == "" {
		return req.Turn(ctx, said)
	}
	p.calls++
	id := fmt.Sprintf("call-%d", p.calls)
	said.ToolCalls = []protocol.ToolCall{{ID: id, Name: t.Tool, Args: t.Args}}
	if err := req.Turn(ctx, said); err != nil {
		return err
	}
	return req.Turn(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: id, Content: t.Result})
}

// write writes the files of a step into the working directory.
func (p *player) write(dir string) error {
	for _, f := range p.step.Files {
		if !filepath.IsLocal(f.Path) {
			return fmt.Errorf("file %s: the path leaves the working directory", f.Path)
		}
		path := filepath.Join(dir, f.Path)
		if err := durable.OS().MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(durable.OS(), path, []byte(f.Content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// answer is the text of a result, for its last turn.
func answer(res agentkit.Result) string {
	if res.Value != nil {
		if b, err := json.Marshal(res.Value); err == nil {
			return string(b)
		}
	}
	return res.Output + res.Suspend
}

// sleep waits, or ends with ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
