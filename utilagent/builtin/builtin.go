// Package builtin provides uwf's own agents as a library: the loop of package react, with the tools of
// package tools, on the model from the config.
//
//	func main() { agentkit.Run(builtin.Options()) }
//
// The workspace is the directory in which the agent is started. A role's later visits continue its
// conversation, also in another process, and so does a try that was killed. Every prompt, reply and tool call
// of a run is stored as a node when it happens; no node contains a key.
package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
	"github.com/united-workforce/uwf/utilagent/llm"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/react"
	"github.com/united-workforce/uwf/utilagent/shellguard"
	"github.com/united-workforce/uwf/utilagent/tools"
	"github.com/united-workforce/uwf/utilagent/tools/fetch"
)

// kind describes an agent.
type kind struct {
	name     string
	tools    bool
	resolves bool // ends with the tool resolve instead of a text
}

var (
	textKind  = kind{name: "builtin", tools: true}
	reactKind = kind{name: "react", tools: true, resolves: true}
	llmKind   = kind{name: "llm"}
)

const usageModel = `
  --model ALIAS        model to use instead of the configured one
`

const usageCommands = `
Commands: set builtin.allowCommands in config.yaml to a list of programs, or to "*".
`

// Options returns the options of uwf-builtin, which works with tools and ends with a text. Tools in more are
// added.
func Options(more ...tools.Tool) agentkit.Options {
	return options(textKind, more, "Runs an agent loop with tools on an OpenAI-compatible endpoint.\n"+usageModel+usageCommands)
}

// ReactOptions returns the options of uwf-react, which works with tools and ends by calling resolve with the
// role's output.
func ReactOptions(more ...tools.Tool) agentkit.Options {
	return options(reactKind, more, "Runs an agent loop with tools on an OpenAI-compatible endpoint. The model returns\n"+
		"the role's data by calling the tool \"resolve\".\n"+usageModel+usageCommands)
}

// LLMOptions returns the options of uwf-llm: one request, no tools.
func LLMOptions() agentkit.Options {
	return options(llmKind, nil, "Sends one request to an OpenAI-compatible endpoint, without tools.\n"+usageModel)
}

func options(k kind, more []tools.Tool, usage string) agentkit.Options {
	a := &agent{kind: k, more: more}
	return agentkit.Options{
		Name: k.name, Usage: usage, ParseArgs: a.parseArgs, Structured: k.resolves,
		Run: a.run, Continue: a.resume, Resumes: true, CopiesSessions: true,
		Dispatch: bind.Dispatch,
	}
}

// agent is an agent with its command-line settings.
type agent struct {
	kind
	model string // model alias; "" uses the configured one
	more  []tools.Tool
}

func (a *agent) run(ctx context.Context, req *agentkit.Request) (res agentkit.Result, err error) {
	w, err := a.open(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	defer w.close()
	session, err := w.begin(ctx)
	if err != nil {
		return agentkit.Result{}, err
	}
	if err := req.RecordSession(session.ID); err != nil {
		return agentkit.Result{}, err
	}
	answer, res, err := w.play(ctx, w.loop(ctx), session)
	if reason := w.pause(answer, err); reason != "" && !(req.Yields && err != nil) {
		res.Suspend = reason
		_ = errors.As(err, &res.Limit)
		return res, nil
	}
	return w.deliver(res, answer, err)
}

// resume lets the model correct an answer. It may read but not change anything: with all their tools, models
// continue the work instead of answering.
func (a *agent) resume(ctx context.Context, sessionID, message string, req *agentkit.Request) (res agentkit.Result, err error) {
	w, err := a.open(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	defer w.close()
	session, err := w.sessions.Open(sessionID)
	if err != nil {
		return agentkit.Result{}, err
	}
	if err := session.Add(llm.User(message)); err != nil {
		return agentkit.Result{}, err
	}
	w.sent = session.Messages[len(session.Messages)-1:]
	loop := w.loop(ctx)
	loop.Turns, loop.ReadOnly = w.continueTurns, true
	answer, res, err := w.play(ctx, loop, session)
	return w.deliver(res, answer, err)
}

// deliver sets the answer in the result. A part of an answer is none, even if it begins with valid data.
func (w *work) deliver(res agentkit.Result, answer react.Answer, err error) (agentkit.Result, error) {
	switch {
	case w.kind.resolves && answer.Outcome == react.Done:
		res.Value = answer.Value
	case err == nil && answer.Cut:
		err = fmt.Errorf("the answer was cut off at the limit for one reply, after %d bytes", len(answer.Text))
	default:
		res.Output = answer.Text
	}
	return res, err
}

// play runs the loop and records its cost.
func (w *work) play(ctx context.Context, loop react.Loop, session *react.Session) (react.Answer, agentkit.Result, error) {
	if err := w.record.begin(ctx, w, loop, session); err != nil {
		return react.Answer{}, agentkit.Result{SessionID: session.ID}, err
	}
	began := w.run.Env.Now()
	answer, err := loop.Run(ctx, session)
	err = w.failure(w.advise(err))
	took := w.run.Env.Now().Sub(began).Milliseconds()
	err = errors.Join(err, w.record.end(context.WithoutCancel(ctx), answer, err))
	bill := w.tried
	bill.AddAll(answer.Bill)
	usage := bill.Usage()
	if bill.Parts == 0 && err != nil {
		usage = &protocol.Usage{} // the model never replied, so nothing was spent
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
			Model: cmp.Or(answer.Model, w.endpoint.Model), Outcome: outcome, DurationMs: took, Requests: w.record.texts,
		},
	}, err
}

// parseArgs removes --model from the arguments.
func (a *agent) parseArgs(args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		flag, value, attached := strings.Cut(args[i], "=")
		if flag != "--model" {
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, errors.New("--model needs a model alias of config.yaml")
			}
			value = args[i]
		}
		if value == "" {
			return nil, errors.New("--model is empty")
		}
		a.model = value
	}
	return rest, nil
}

// begin opens the conversation: that from the role's last visit or from a killed try, or else a new one.
func (w *work) begin(ctx context.Context) (*react.Session, error) {
	session, err := w.earlier(ctx)
	if session != nil || err != nil {
		return session, err
	}
	news := append([]llm.Message{llm.System(w.system())}, w.news(nil)...)
	w.sent = news
	return w.sessions.New(slices.Clone(news)...)
}

// earlier opens the conversation to continue, or returns nil.
func (w *work) earlier(ctx context.Context) (session *react.Session, err error) {
	if w.req.SessionID == "" {
		return nil, nil
	}
	if w.req.Interrupted {
		session, err = w.resume(ctx)
	} else {
		session, err = w.sessions.Copy(w.req.SessionID, func(old []llm.Message) []llm.Message {
			w.sent = w.news(old)
			return w.sent
		})
	}
	if err == nil {
		return session, nil
	}
	if !errors.Is(err, react.ErrNoSession) {
		return nil, err
	}
	fmt.Fprintf(w.run.Env.Stderr, "%s: %v; beginning a new one with the whole history\n", protocol.AgentName(w.kind.name), err)
	return nil, w.req.StartOver(ctx, err.Error())
}

const interrupted = "Your work on this was interrupted before your final answer. Continue where you stopped; your " +
	"work so far is above. A call without a result may or may not have run; check before you repeat it."

// resume opens the conversation of a try that was killed or failed. Its turns belong to this step.
func (w *work) resume(ctx context.Context) (*react.Session, error) {
	session, err := w.sessions.Open(w.req.SessionID)
	if err != nil {
		return nil, err
	}
	w.tried = session.Spent.Without(w.req.Reported)
	for _, turn := range session.Unfinished {
		if err := w.req.Turn(ctx, turn); err != nil {
			return nil, err
		}
	}
	if w.loop(ctx).Answered(session) {
		return session, nil // everything but the step itself was done
	}
	message := interrupted + "\n\n" + w.req.User
	if err := session.Add(llm.User(message)); err != nil {
		return nil, err
	}
	w.sent = session.Messages[len(session.Messages)-1:]
	return session, w.req.Turn(ctx, protocol.Turn{Role: protocol.TurnUser, Content: message})
}

// equip gives the agent its tools. The permission in the config can only remove tools.
func (w *work) equip(ctx context.Context, c protocol.Config, more []tools.Tool) error {
	var pass []string
	if c.Builtin != nil {
		pass = c.Builtin.PassEnv
	}
	commands := tools.Commands{
		Shell:  config.AnyCommand(c.Builtin, w.run.Env),
		Refuse: shellguard.RefuseEngine,
		Now:    w.run.Env.Now,
		Env:    tools.CommandEnv(w.run.Env.Environ, w.run.Secrets, pass),
	}
	if commands.Shell || c.Builtin != nil && len(c.Builtin.AllowCommands) > 0 {
		commands.Env = append(commands.Env, w.run.Mark())
		commands.Adopts = w.run.Adopts()
	}
	pages := fetch.Options{Allow: w.run.Env.Get("UWF_BUILTIN_ALLOW_FETCH") == "1"}
	if b := c.Builtin; b != nil {
		commands.Allow = b.AllowCommands
		pages.Allow, pages.Private = pages.Allow || b.AllowFetch, b.AllowPrivate
	}
	if err := w.confine(ctx, &commands, c); err != nil {
		return err
	}
	most := tools.Runs
	switch c.Agents[w.req.Alias].Permission {
	case "read-only":
		most = tools.Reads
	case "edits":
		most = tools.Writes
	}
	w.commands = allowed(commands, most)
	if most >= tools.Runs {
		w.warnOfCommands(commands)
	}
	var err error
	w.tools, err = tools.NewRegistry()
	own := append(tools.All(w.workspace, commands), fetch.New(w.workspace, pages))
	for _, t := range append(own, more...) {
		if t.Spec().Effect <= most {
			err = errors.Join(err, w.tools.Add(t))
		}
	}
	return err
}

// allowed describes which commands the model can run.
func allowed(c tools.Commands, most tools.Effect) string {
	switch {
	case most < tools.Runs:
		return "none: the permission of this agent in config.yaml"
	case c.Shell:
		return "any; confined by: " + c.Confinement()
	case len(c.Allow) > 0:
		return "only " + strings.Join(c.Allow, ", ") + "; confined by: " + c.Confinement()
	}
	return "switched off"
}

func names(r *tools.Registry) []string {
	var list []string
	for _, s := range r.Specs() {
		list = append(list, s.Name)
	}
	return list
}

// confine sets protected paths and the sandbox for commands, which is on by default where possible.
func (w *work) confine(ctx context.Context, commands *tools.Commands, c protocol.Config) error {
	b, sandbox := cmp.Or(c.Builtin, &protocol.BuiltinConfig{}), config.Sandbox(c, w.req.Alias)
	e := w.run.Env
	commands.Warn, commands.Once, commands.Guard = w.warn, w.once(), box.SharedState(w.run.Dirs) // this comes first, because a missing path cannot be hidden
	var artifacts []string
	if dir := w.run.Dirs.OwnArtifacts(e.Get(protocol.EnvArtifacts)); dir != "" {
		artifacts = []string{dir}
	}
	w.off = offlimits.New(offlimits.Options{
		UserHome: cmp.Or(e.Get("HOME"), e.Get("USERPROFILE")), Environ: e.Environ, Dir: w.workspace.Dir(), Home: w.run.Dirs.Home, Store: w.run.Dirs.Store,
		Hide: sandbox.DenyRead, AllowRead: slices.Concat(sandbox.AllowRead, artifacts), AllowWrite: sandbox.AllowWrite,
	})
	w.workspace.Limit(w.off)
	messages, err := box.Recover(ctx, w.run.Dirs.Box(), commands.Guard)
	for _, text := range messages {
		w.warn("a command whose agent was killed " + text)
	}
	if err != nil {
		w.warn("could not check what a killed command left behind: " + err.Error())
	}
	for _, name := range b.Capabilities {
		if !slices.Contains(confine.Capabilities(), name) {
			return fmt.Errorf("invalid builtin.capabilities %q in config.yaml: want %s", name, strings.Join(confine.Capabilities(), ", "))
		}
	}
	commands.Network = config.Network(c, w.req.Alias, w.req.Workflow.Name, w.req.Role)
	if sandbox.Mode == protocol.SandboxNone {
		return nil
	}
	commands.MustConfine, commands.MustBox = sandbox.Holds(), sandbox.Mode == protocol.SandboxRequired
	commands.Nest = sandbox.Nests(false)
	commands.Box, commands.State = box.Find(e.Exe), w.run.Dirs.Box()
	commands.Home, commands.Environ = e.Get("HOME"), e.Environ
	commands.Exe, commands.Keep, commands.IPC = e.Exe, b.Capabilities, sandbox.SharesMemory()
	commands.NoUnixSockets = config.NoUnixSockets(b, sandbox.Mode, config.System{Sockets: confine.CanDenySockets()})
	var env, dirs []string
	switch {
	case sandbox.Caches == "user":
		dirs = tools.CacheDirs(e.Environ)
	case commands.Shell || len(commands.Allow) > 0: // creates directories, so only if commands can run
		env, dirs = w.workspace.Caches(e.Environ, e.Now())
		commands.Env = append(commands.Env, env...)
	}
	commands.Writable = slices.Concat(dirs, w.off.Writable(), artifacts)
	return nil
}

// warn prints a warning.
func (w *work) warn(text string) {
	w.req.Warn("%s", text)
}

// once returns a function that prints each warning once.
func (w *work) once() func(text string) {
	printed := map[string]bool{}
	return func(text string) {
		if !printed[text] {
			printed[text] = true
			w.warn(text)
		}
	}
}

// warnOfCommands warns once per run if commands are less restricted than a user may expect.
func (w *work) warnOfCommands(c tools.Commands) {
	for _, text := range c.Weaknesses(w.workspace) {
		w.warn(text)
	}
}
