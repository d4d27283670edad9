package mock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// EnvScenario is the environment variable for the scenario file if no flag sets it.
const EnvScenario = "UWF_MOCK_DATA"

const usage = `Plays a script instead of asking a model.

  --mock-data FILE     YAML script (alias --scenario; default $` + EnvScenario + `)
`

// Main runs the mock agent in this process and returns its exit status.
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

// Options returns the mock agent with a given scenario, for in-memory tests. It supports the faults that
// don't need a separate process.
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
	replies  int // calls of Continue
	calls    int // tool calls
}

func (p *player) options() agentkit.Options {
	return agentkit.Options{
		Name: "mock", Usage: usage, ParseArgs: p.parseArgs, Run: p.run, Continue: p.correct, Instant: true,
	}
}

// parseArgs loads the scenario.
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
	if p.step.Faults != (Faults{}) || len(p.step.Files) > 0 {
		proc.AwaitSignals(ctx)
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

// play records a reply's turns and returns its answer.
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

// asCommand completes the output of a role that is a command, for which a status is enough.
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

// turn records a turn before the answer.
func (p *player) turn(ctx context.Context, req *agentkit.Request, t Turn) error {
	if err := sleep(ctx, t.Delay); err != nil {
		return err
	}
	said := protocol.Turn{Role: protocol.TurnAssistant, Content: t.Text}
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
	for _, name := range slices.Sorted(maps.Keys(p.step.Files)) {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("file %s: outside the working directory", name)
		}
		path := filepath.Join(dir, name)
		if err := durable.OS().MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(durable.OS(), path, []byte(p.step.Files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// answer returns the text of a result, for its last turn.
func answer(res agentkit.Result) string {
	if res.Value != nil {
		if b, err := json.Marshal(res.Value); err == nil {
			return string(b)
		}
	}
	return res.Output + res.Suspend
}

// sleep waits, or returns early when ctx is cancelled.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	proc.AwaitSignals(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// misbehave performs the scripted faults that precede the reply.
func (p *player) misbehave(ctx context.Context, req *agentkit.Request) error {
	p.crashAt(CrashAtStart)
	if p.step.Deaf {
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
	if err := p.noise(runenv.Of(ctx).Env); err != nil {
		return err
	}
	if err := p.write(req.Cwd); err != nil {
		return err
	}
	if err := p.grandchild(req, runenv.Of(ctx).Env.Exe); err != nil {
		return err
	}
	if !p.step.Hang {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (p *player) noise(e env.Env) error {
	if _, err := io.WriteString(e.Stderr, p.step.Stderr); err != nil {
		return err
	}
	if _, err := io.WriteString(e.Stdout, p.step.Stdout); err != nil {
		return err
	}
	line := []byte(strings.Repeat("noise ", 170) + "\n")
	for left := p.step.StdoutBytes; left > 0; left -= int64(len(line)) {
		if _, err := e.Stdout.Write(line[max(0, int64(len(line))-left):]); err != nil {
			return err
		}
	}
	return nil
}

// crashAt kills this process if the script asks for a crash at a point.
func (p *player) crashAt(point Crash) {
	if p.step.Crash != point {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // an error has no recipient
	}
	select {} // the signal is on its way
}

// grandchildFlag makes this program a process that only sleeps.
const grandchildFlag = "--be-grandchild"

// beGrandchild returns how long this process must sleep if it is a grandchild.
func beGrandchild(args []string) (time.Duration, bool) {
	if len(args) != 2 || args[0] != grandchildFlag {
		return 0, false
	}
	d, err := time.ParseDuration(args[1])
	return d, err == nil
}

// grandchild starts a process in our group and does not wait for it.
func (p *player) grandchild(req *agentkit.Request, exe string) error {
	g := p.step.Grandchild
	if g.For == 0 {
		return nil
	}
	cmd := exec.Command(exe, grandchildFlag, g.For.String())
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("grandchild: %w", err)
	}
	if g.PidFile == "" {
		return nil
	}
	path := g.PidFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(req.Cwd, path)
	}
	return durable.WriteFile(durable.OS(), path, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

// faultyStdout wraps stdout to detect the commit, which the kit follows immediately with the result line.
type faultyStdout struct {
	out    io.Writer
	player *player
}

func (f *faultyStdout) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(b, "\n{\""), []byte("stepHash")) {
		return f.out.Write(b)
	}
	f.player.crashAt(CrashAfterCommit)
	line := b
	if f.player.step.ResultLine != nil {
		line = []byte(*f.player.step.ResultLine)
	}
	if _, err := f.out.Write(line); err != nil {
		return 0, err
	}
	f.player.crashAt(CrashAfterResult)
	return len(b), nil
}
