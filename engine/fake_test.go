//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// agentLog is the file to which agents append a line when they run.
const agentLog = "agents.log"

// actor is a running fake agent. Its script is a list of actions separated by commas, one per step of the
// thread; the last one repeats. An action is the status to answer with, or "!" and the name of another
// behavior, with an argument after a colon.
type actor struct {
	atMs   int64 // time of turns; 0 if unknown
	ctx    context.Context
	home   string
	store  *fsstore.Store
	thread *thread.Thread
	head   protocol.Hash
	role   string
	prompt string
	base   int
}

// fakeAgent plays a script and returns the exit status.
func fakeAgent(args []string) int {
	a, err := newActor()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake agent:", err)
		return 1
	}
	actions := strings.Split(args[0], ",")
	action := actions[min(a.thread.Len(), len(actions)-1)]
	a.log(fmt.Sprintf("%s %s %s", a.role, action, strings.Join(args[1:], " ")))
	name, arg, _ := strings.Cut(strings.TrimPrefix(action, "!"), ":")
	if !strings.HasPrefix(action, "!") {
		name, arg = "answer", action
	}
	return a.act(name, arg)
}

func newActor() (*actor, error) {
	a := &actor{
		ctx: context.Background(), home: os.Getenv(protocol.EnvHome),
		head: protocol.Hash(os.Getenv(protocol.EnvHead)), role: os.Getenv(protocol.EnvRole),
	}
	var err error
	if a.store, err = fsstore.Open(a.ctx, os.Getenv(protocol.EnvStore), fsstore.Options{}); err != nil {
		return nil, err
	}
	if a.base, err = strconv.Atoi(os.Getenv(protocol.EnvLimitBase)); err != nil {
		return nil, err
	}
	prompt, err := cas.Read[protocol.Text](a.ctx, a.store, protocol.Hash(os.Getenv(protocol.EnvPrompt)))
	if err != nil {
		return nil, err
	}
	a.prompt = string(prompt)
	a.thread, err = thread.Open(a.ctx, a.store, a.head)
	return a, err
}

// act performs one action.
func (a *actor) act(name, arg string) int {
	switch name {
	case "answer":
		a.result(a.answer(arg, nil))
	case "exit":
		code, _ := strconv.Atoi(arg)
		fmt.Fprintln(os.Stderr, "\x1b[31mit broke\x1b[0m")
		return code
	case "error":
		fmt.Println(`{"error":"no key for the model"}`)
		return 1
	case "witness": // logs its prompt; killed the first time if that ends in 7
		a.log("told " + a.prompt)
		if strings.HasSuffix(a.prompt, "7") && strings.Count(a.logged(), "told "+a.prompt+"\n") == 1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		a.result(a.answer(arg, nil))
	case "durable": // reports that it has flushed its nodes
		line, _ := json.Marshal(protocol.Result{StepHash: a.answer(arg, nil), Durable: true})
		fmt.Println(string(line))
	case "suspended-by-limit":
		line, _ := json.Marshal(protocol.Result{StepHash: a.answer("unclear", nil), Kind: protocol.FailedRateLimit, RetryAtMs: time.Now().Add(time.Hour).UnixMilli()})
		fmt.Println(string(line))
	case "warn":
		fmt.Fprintf(os.Stderr, "begin\nwarning: \x1b[31mno wall\x1b[0m\nend")
		if arg == "error" {
			fmt.Println(`{"error":"no key for the model"}`)
			break
		}
		a.result(a.answer(arg, nil))
	case "quiet-error":
		fmt.Println(`{"error":"no key for the model"}`)
	case "result-then-fail":
		a.result(a.answer(arg, nil))
		return 9
	case "print":
		fmt.Println(arg)
	case "noise":
		mb, _ := strconv.Atoi(arg)
		line := strings.Repeat("x", 1023) + "\n"
		for range mb << 10 {
			_, _ = io.WriteString(os.Stdout, line)
		}
		a.result(a.answer("ready", nil))
	case "hang":
		a.hang(arg)
	case "gate": // announce, wait, answer
		status, gate, _ := strings.Cut(arg, "@")
		a.log("at gate " + strconv.Itoa(os.Getpid()))
		for !exists(filepath.Join(a.home, gate)) {
			time.Sleep(2 * time.Millisecond)
		}
		a.result(a.answer(status, nil))
	case "finish-when-told": // finishes its work when asked to stop
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGINT)
		a.log("at gate " + strconv.Itoa(os.Getpid()))
		<-c
		a.result(a.answer(arg, nil))
	case "daemon": // leaves a process that holds everything inherited
		a.daemon(arg == "new-session")
		a.result(a.answer("ready", nil))
	case "killed": // killed from outside, while its child keeps running
		c := exec.Command("sleep", "60")
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		c.Env = append(os.Environ(), protocol.EnvStartedFor+"="+os.Getenv(protocol.EnvRunDir))
		if c.Start() == nil {
			a.log(fmt.Sprint("child ", c.Process.Pid))
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "turns":
		a.turns()
	case "cost": // status/dollars/tokens/ms; "?" is unknown
		a.log("budget " + os.Getenv(protocol.EnvBudget))
		a.result(a.costs(strings.Split(arg, "/")))
	case "counts": // reports retries and maximum as the reason
		line, _ := json.Marshal(protocol.Result{Error: "retries " + os.Getenv(protocol.EnvRetries), Kind: protocol.FailureKind(arg)})
		fmt.Println(string(line))
		return 1
	case "limited": // kind/ms until reset/failing tries/status/repetitions: a provider that refuses for a while
		said := strings.Split(arg, "/")
		a.log("visit " + os.Getenv(protocol.EnvVisitKey))
		fails, _ := strconv.Atoi(said[2])
		if strings.Count(a.logged(), "visit ") > fails {
			a.result(a.costs([]string{said[3], "0.4", "10"}))
			break
		}
		r := protocol.Result{Error: "no more for now", Kind: protocol.FailureKind(said[0]), Usage: &protocol.Usage{Turns: 1, OutputTokens: 3}}
		cost := 0.1
		r.Usage.CostUSD = &cost
		if len(said) > 4 {
			r.Repeated, _ = strconv.Atoi(said[4])
		}
		if in, _ := strconv.ParseInt(said[1], 10, 64); in != 0 {
			r.RetryAtMs = time.Now().UnixMilli() + in
		}
		line, _ := json.Marshal(r)
		fmt.Println(string(line))
		return 1
	case "writes":
		a.writes(arg)
	case "timed": // prints the time
		a.atMs = time.Now().UnixMilli()
		a.result(a.answer(arg, nil))
	case "lie":
		a.result(a.lie(arg))
	case "show":
		fmt.Fprintln(os.Stderr, a.facts())
		return 1
	default:
		fmt.Fprintln(os.Stderr, "fake agent: unknown action", name)
		return 2
	}
	return 0
}

// logged returns the content of the agents' log.
func (a *actor) logged() string {
	data, err := os.ReadFile(filepath.Join(a.home, agentLog))
	must(err)
	return string(data)
}

// costs answers with a status and its cost.
func (a *actor) costs(said []string) protocol.Hash {
	return a.answer(said[0], func(s *protocol.Step, _ *cas.Batch) {
		s.Usage = &protocol.Usage{Turns: 1}
		if usd, err := strconv.ParseFloat(said[1], 64); err == nil {
			s.Usage.CostUSD = &usd
		}
		if len(said) > 2 {
			s.Usage.OutputTokens, _ = strconv.ParseInt(said[2], 10, 64)
		}
		if len(said) > 3 {
			took, _ := strconv.ParseInt(said[3], 10, 64)
			s.CompletedAtMs += took
		}
	})
}

func (a *actor) result(h protocol.Hash) {
	line, _ := json.Marshal(protocol.Result{StepHash: h, SessionID: "s", Role: a.role})
	fmt.Println(string(line))
}

// log appends a line with one write, so that lines of concurrent agents don't mix.
func (a *actor) log(line string) {
	f, err := os.OpenFile(filepath.Join(a.home, agentLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err != nil {
		panic(err)
	}
	f.Close()
}

// answer writes a valid step, modified by change, and returns its hash.
func (a *actor) answer(status string, change func(*protocol.Step, *cas.Batch)) protocol.Hash {
	b := cas.NewBatch(a.store, time.Now)
	wf, err := a.thread.Workflow(a.ctx)
	must(err)
	var output protocol.Hash
	if status == "$SUSPEND" {
		output, err = b.Add(a.ctx, protocol.NewSuspend("I need a person"))
	} else {
		output, err = b.AddValue(a.ctx, wf.Roles[a.role].Frontmatter, map[string]any{"$status": status, "plan": "the " + status + " thing"})
	}
	must(err)
	turn, err := b.Add(a.ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "I said " + status, AtMs: a.atMs})
	must(err)
	detail, err := b.Add(a.ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []protocol.Hash{turn}})
	must(err)
	prompt, err := b.Add(a.ctx, protocol.Text("You are "+a.role+". "+a.prompt))
	must(err)
	s := protocol.Step{
		Prompt: &prompt,
		Start:  a.thread.StartHash, Index: a.thread.Len(), Visits: map[string]int{}, LimitBase: a.base,
		Role: a.role, Output: output, Detail: detail, Agent: "uwf-fake", EdgePrompt: a.prompt, Cwd: workDir(),
		SessionID: "s", ExtractedBy: protocol.ByValue, StartedAtMs: time.Now().UnixMilli(), CompletedAtMs: time.Now().UnixMilli(),
		Usage: &protocol.Usage{Turns: 1, OutputTokens: 5},
	}
	if a.thread.Last != nil {
		s.Prev = &a.thread.Head
		maps.Copy(s.Visits, a.thread.Last.Visits)
	}
	s.Visits[a.role]++
	if change != nil {
		change(&s, b)
	}
	h, err := b.Add(a.ctx, s)
	must(err)
	must(b.Commit(a.ctx))
	return h
}

// lie writes a step that is invalid in the given way.
func (a *actor) lie(how string) protocol.Hash {
	return a.answer("ready", func(s *protocol.Step, b *cas.Batch) {
		switch how {
		case "prev":
			other, err := b.Add(a.ctx, protocol.Text("not the head"))
			must(err)
			s.Prev, s.Index = &other, 7
		case "start":
			other, err := b.Add(a.ctx, protocol.Start{Workflow: a.thread.Start.Workflow, Prompt: "another thread", Cwd: "/"})
			must(err)
			s.Start = other
		case "index":
			s.Index++
		case "role":
			s.Role = "worker"
		case "error":
			s.Error = &protocol.StepFailure{Code: protocol.CodeAgent}
		case "visits":
			s.Visits = map[string]int{"planner": 5}
		case "limitBase":
			s.LimitBase = 3
		case "agent":
			s.Agent = ""
		case "cwd":
			s.Cwd = "/"
		case "sub":
			s.Cwd = filepath.Join(s.Cwd, "sub")
			must(os.MkdirAll(s.Cwd, 0o755))
		case "edgePrompt":
			s.EdgePrompt = "rm -rf /"
		case "before":
			s.StartedAtMs = 1
		case "future":
			s.CompletedAtMs = time.Now().Add(time.Hour).UnixMilli()
		case "backwards":
			s.StartedAtMs, s.CompletedAtMs = s.CompletedAtMs, s.StartedAtMs-10*time.Minute.Milliseconds()
		case "never":
			s.CompletedAtMs = -5
		case "prompt":
			s.Prompt = &s.Output
		case "borrowed detail":
			s.Detail = a.thread.Last.Detail
		case "borrowed prompt":
			s.Prompt = a.thread.Last.Prompt
		case "type":
			h, err := b.Add(a.ctx, protocol.Text("a text"))
			must(err)
			s.Output = h
		case "detail":
			s.Detail = s.Output
		case "missing-output":
			s.Output = "0000000000000"
		case "missing-detail":
			s.Detail = "0000000000000"
		case "missing-turn":
			h, err := b.Add(a.ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []protocol.Hash{"0000000000000"}})
			must(err)
			s.Detail = h
		case "schema":
			s.Output = a.invalidOutput(map[string]any{"no": "status"})
		case "rare":
			s.Output = a.invalidOutput(map[string]any{"$status": "ready", "plan": "p", "mail": "nobody"})
		default:
			panic(how)
		}
	})
}

// invalidOutput puts a node of the role's type that doesn't match its schema, which the cas package doesn't
// allow.
func (a *actor) invalidOutput(value any) protocol.Hash {
	wf, err := a.thread.Workflow(a.ctx)
	must(err)
	typ := wf.Roles[a.role].Frontmatter
	payload, err := cas.Encode(value)
	must(err)
	n := cas.Node{Hash: a.store.Algorithm().Sum(typ, payload), Type: typ, Payload: payload, Timestamp: 1}
	must(a.store.Commit(a.ctx, n))
	return n.Hash
}

// turns announces two turns.
func (a *actor) turns() {
	for i, text := range []string{"first", "second"} {
		b := cas.NewBatch(a.store, time.Now)
		h, err := b.Add(a.ctx, protocol.Turn{Index: i, Role: protocol.TurnAssistant, Content: text})
		must(err)
		must(b.Put(a.ctx))
		line, _ := json.Marshal(protocol.NewTurnLine(h))
		fmt.Println(string(line))
		fmt.Println("and some talk")
	}
	fmt.Println(`{"uwf":"turn","hash":"0000000000000"}`) // of a missing node
	a.result(a.answer("ready", nil))
}

// hang doesn't end by itself; depending on how, it also ignores SIGTERM.
func (a *actor) hang(how string) {
	if how == "stubborn" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	if how == "family" { // with a child in its process group
		cmd := exec.Command("sleep", "1000")
		must(cmd.Start())
		a.log("child " + strconv.Itoa(cmd.Process.Pid))
	}
	if how == "finished" { // it has written its result but doesn't exit
		a.result(a.answer("ready", nil))
	}
	a.log("at gate " + strconv.Itoa(os.Getpid()))
	time.Sleep(time.Hour)
}

// daemon starts a process that inherits stdout, stderr and the lock.
func (a *actor) daemon(newSession bool) {
	cmd := exec.Command("sleep", "1000")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "agent.lock")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: newSession}
	must(cmd.Start())
	a.log("child " + strconv.Itoa(cmd.Process.Pid))
}

// facts returns what the agent got from its environment.
func (a *actor) facts() string {
	facts := []string{
		"args=" + strings.Join(os.Args[3:], "|"), "cwd=" + workDir(), "prompt=" + a.prompt,
		"agent=" + os.Getenv(protocol.EnvAgent), "extra=" + os.Getenv("EXTRA"),
		"thread=" + os.Getenv(protocol.EnvThread), "home=" + os.Getenv(protocol.EnvHome),
	}
	return strings.Join(facts, "\n")
}

// fakeEngine works on a thread: <home> <thread> <script> [action [words]]. An action is a value of [Work.Do],
// background, or drive, which runs the thread and all its children to the end. Tests kill the engine, or have
// it kill itself, and check what it leaves.
func fakeEngine(args []string) int {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintln(os.Stderr, r)
			os.Exit(99)
		}
	}()
	e := deadlyEngine(args[0], args[2])
	work := Work{Steps: 1}
	if len(args) > 4 {
		work.Prompt = args[4]
	}
	var err error
	if len(args) > 3 && args[3] == "background" {
		work.Steps = UntilEnd
		startsItself(e, args[2])
		_, err = e.Background(context.Background(), args[1], work)
	} else {
		if len(args) > 3 {
			work.Do = Action(args[3])
		}
		if work.Do == "drive" {
			work = Work{}
		}
		_, err = e.Do(context.Background(), args[1], work)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fakeWorker is a background worker; its agents play the script given to [startsItself].
func fakeWorker(c background.Call) int {
	e := deadlyEngine(c.Home, os.Getenv(workerScript))
	if err := e.Worker(context.Background(), c.Thread, c.Lock, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// deadlyEngine returns an engine whose process dies at the change that killAt names.
func deadlyEngine(home, script string) *Engine {
	left := &atomic.Int64{}
	if n, err := strconv.Atoi(os.Getenv(killAt)); err == nil {
		left.Store(int64(n))
	}
	return openEngine(panicking{}, home, deadlyFS{durable.OS(), left}, func() protocol.Config {
		c := fakeConfig(script)
		if usd, err := strconv.ParseFloat(os.Getenv(perDay), 64); err == nil {
			c.Limits = &protocol.LimitsConfig{PerDay: &protocol.DayLimits{CostUSD: usd}}
		}
		return c
	})
}

// perDay is the environment variable for the limit per day of a fake engine.
const perDay = "UWF_TEST_PER_DAY"

// workerScript is the environment variable for the script of a worker's agents.
const workerScript = "UWF_TEST_SCRIPT"

// startsItself lets an engine start a background worker.
func startsItself(e *Engine, script string) {
	var err error
	e.Reader.Env.Exe, err = os.Executable()
	must(err)
	e.Reader.Env = e.Reader.Env.With(workerScript, script)
}

// panicking implements [require.TestingT] outside of tests.
type panicking struct{}

func (panicking) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) FailNow()                          { panic("failed") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func workDir() string {
	dir, err := os.Getwd()
	must(err)
	return dir
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
