package cliagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// Messages to a session whose run ended before its work was done.
const (
	finishText  = "Continue where you stopped, and finish with the required output."
	messageText = "Do what follows from that. Then finish with the required output, the whole of it, also if it is what you have written already."
	stopText    = "Stop using tools now. Write the final output, as required, from what you know so far."
)

// refusedText returns the message for a session that ended after a refusal: some programs take a refusal for
// a request to stop.
func refusedText(what []string) string {
	return "You were not allowed to do this, and no person can allow it now: " + strings.Join(what, "; ") + ". Don't stop: do the work with the tools that you can use, and finish with the required output. If that is impossible, explain it in the output."
}

// maxRefusals bounds how many times a session is asked to continue after a refusal.
const maxRefusals = 3

func (r *runner) run() (agentkit.Result, error) {
	t := task{prompt: r.req.Prompt, session: r.req.SessionID, fork: r.req.Fork, cut: r.req.Cut}
	if isMadeUp(t.session) {
		if err := r.req.StartOver(r.ctx, r.adapter.Program+" reported no session id"); err != nil {
			return agentkit.Result{}, err
		}
		t = task{prompt: r.req.Prompt}
	}
	if t.session != "" {
		k, found := r.knownOf(t.session)
		anywhere := r.adapter.Sessions.CopiesAnywhere
		why := k.stale(found, r.command, r.cwd, r.adapter.Sessions.AnyDir || t.fork && anywhere != nil && anywhere(r.version()))
		if !r.adapter.isPlain(t.session) || t.cut != "" && !r.adapter.isPlain(t.cut) {
			why = "its id is invalid"
		}
		if why != "" {
			if err := r.startOver(&t, why); err != nil {
				return agentkit.Result{}, err
			}
		}
	}
	return r.work(t)
}

func (r *runner) correct(session, message string) (agentkit.Result, error) {
	r.notes, r.fresh, r.hasTurns = nil, false, false
	t := task{prompt: message, session: session, message: message}
	if isMadeUp(session) {
		t.session, t.prompt = "", withAnswer(r.req.Prompt, r.answer, message)
	}
	return r.work(t)
}

// madeUp is the prefix of made-up session IDs for programs that remember nothing, because a step needs an ID.
const madeUp = "none-"

func isMadeUp(session string) bool { return strings.HasPrefix(session, madeUp) }

// withAnswer returns a correction prompt for a program that remembers nothing.
func withAnswer(prompt, answer, message string) string {
	return fmt.Sprintf("%s\n\n## Your answer so far\n\n%s\n\n## What is wrong with it\n\n%s", prompt, answer, message)
}

// work makes calls until there is an answer or a failure.
func (r *runner) work(t task) (agentkit.Result, error) {
	r.pushed, r.refusals = false, 0
	var spent spent
	for {
		out, err := r.try(t)
		if errors.Is(err, ErrCannotFork) && t.fork {
			if err := r.startOver(&t, err.Error()); err != nil {
				return agentkit.Result{}, err
			}
			continue
		}
		if err != nil {
			return agentkit.Result{}, err
		}
		spent.add(out)
		r.worked = r.worked || out.worked
		if err := r.recordMessages(out); err != nil {
			return agentkit.Result{}, err
		}
		next, err := r.next(out)
		if err == nil && next != nil {
			t = *next
			continue
		}
		res := r.result(out)
		res.Usage = spent.usage()
		if res.Detail != nil {
			res.Detail.DurationMs = spent.tookMs
		}
		if err == nil {
			err = r.conclude(&res, out)
		}
		if err != nil && out.Kind == Failed && spent.nothing() {
			res.Usage = &protocol.Usage{DurationMs: spent.tookMs} // the model never replied
		}
		return res, err
	}
}

// next returns the task that must follow a call, or nil.
func (r *runner) next(out tried) (*task, error) {
	t := out.task
	switch {
	case out.Kind == SessionLost, r.unusable(out):
		return &t, r.startOver(&t, out.Message)
	case !out.canContinue(r.adapter.Sessions):
		return nil, nil
	case out.Kind == OK && len(r.req.Messages()) > 0:
		return r.followUp(out)
	case out.stoppedByRefusal() && r.refusals < maxRefusals:
		r.refusals++
		r.note("it stopped after a denied request and was asked to continue")
		return &task{prompt: refusedText(out.Refused), session: out.Session, message: t.message}, nil
	case r.pushed:
		return nil, nil
	case out.Kind == Incomplete && (out.Truncated || !isFramed(out.text)):
		r.pushed = true
		r.note("it ended without an answer and was asked to finish")
		return &task{prompt: finishText, session: out.Session, message: t.message}, nil
	case out.counted:
		r.pushed = true
		r.note("it was stopped at its limit of %d turns and asked for its answer", r.maxTurns)
		return &task{prompt: stopText, session: out.Session, message: t.message}, nil
	}
	return nil, nil
}

// followUp returns a task with the messages that arrived while the program worked and that it could not
// receive.
func (r *runner) followUp(out tried) (*task, error) {
	t := &task{session: out.Session, message: out.task.message, messages: r.req.Messages()}
	for _, l := range t.messages {
		if err := r.addTurn(context.WithoutCancel(r.ctx), protocol.Turn{Role: protocol.TurnUser, Content: l.Text}); err != nil {
			return nil, err
		}
		t.prompt += l.Text + "\n\n"
	}
	t.prompt += messageText
	r.note("it received a person's message")
	return t, nil
}

// recordMessages records the messages that a call has delivered, once the model has answered.
func (r *runner) recordMessages(out tried) error {
	if !out.worked && out.Kind != OK {
		return nil
	}
	for _, l := range out.task.messages {
		if err := r.req.MarkDelivered(l); err != nil {
			return err
		}
	}
	return nil
}

// unusable reports whether a failure was caused by a continued session.
func (r *runner) unusable(out tried) bool {
	if out.Kind != Failed || out.task.session == "" || out.worked || r.fresh {
		return false
	}
	switch out.Error {
	case errorkind.SessionNotFound, errorkind.SessionInUse, errorkind.Context, errorkind.BadRequest, Crashed, errorkind.Unknown:
		return true
	}
	return false
}

// startOver abandons the session and sends the whole prompt to a new one.
func (r *runner) startOver(t *task, why string) error {
	if r.fresh {
		return &Error{Program: r.adapter.Program, Kind: errorkind.SessionNotFound, Text: fmt.Sprintf("%s lost its session again: %s", r.adapter.Program, why)}
	}
	r.fresh = true
	why = fmt.Sprintf("session %s could not be continued (%s)", t.session, firstLine(why))
	text := why + ": started over with the whole prompt"
	ctx := context.WithoutCancel(r.ctx)
	if err := r.addTurn(ctx, protocol.Turn{Role: protocol.TurnSystem, Content: text}); err != nil {
		return err
	}
	if err := r.req.StartOver(ctx, why); err != nil {
		return err
	}
	*t = task{prompt: r.req.Prompt, message: t.message}
	if t.message != "" {
		t.prompt = withAnswer(r.req.Prompt, r.answer, t.message)
	}
	return nil
}

// runner performs one step with a program: the run and its corrections.
type runner struct {
	adapter Adapter
	req     *agentkit.Request
	around  *runenv.Run
	env     env.Env // the agent's environment, without variables withheld from the program
	settings
	program     program
	command     string // the command that sessions belong to
	extra       []string
	words       []string // the user's command line, if there is one
	cwd         string
	runDir      string
	mark        string // marks all processes of this run
	sessions    sessions.Dir
	logs        *logs
	host        *Host
	transport   Transport
	boxProgram  string // path of uwf-box, or "" if unavailable
	ahead       *proc.Ahead
	launched    bool // a program was started
	confinement *confinement
	held        string          // description of the sandbox, for the detail
	used        []string        // sessions used by the program
	hidden      []string        // paths hidden from the program's own sandbox
	ctx         context.Context // context of the step, with its timeout

	notes    []string // for the detail
	answer   string   // answer of the last call
	pushed   bool     // an incomplete run was asked to finish
	refusals int      // how many times it was asked to continue after a refusal
	fresh    bool     // the session was abandoned once
	hasTurns bool     // the run or correction has recorded a turn
	worked   bool     // the model produced output in some call of the step
}

// addTurn records a turn.
func (r *runner) addTurn(ctx context.Context, t protocol.Turn) error {
	r.hasTurns = true
	return r.req.Turn(ctx, t)
}

// show shows a progress message in live views; it is not part of the step.
func (r *runner) show(text string) {
	// Only for live views; a real problem also fails the next turn.
	_ = r.req.Writing(context.WithoutCancel(r.ctx), protocol.Turn{Role: protocol.TurnSystem, Content: text})
}

// newRunner finds the program and everything that its calls need.
func newRunner(ctx context.Context, a Adapter, extra []string, req *agentkit.Request) (*runner, error) {
	around := runenv.Of(ctx)
	r := &runner{adapter: a, req: req, around: around, env: around.Env, extra: extra, command: a.Program, cwd: safeopen.Resolved(req.Cwd), ctx: ctx}
	r.mark = around.Mark() // registered first, so it runs after the orderly end
	var err error
	if r.settings, err = settingsOf(ctx, a, req, around); err != nil {
		return nil, err
	}
	r.env.Environ = req.Environ(slices.Concat(a.Logins, r.passEnv)...)
	r.sessions = sessions.Of(around.Dirs, a.Name)
	if err := r.locate(ctx); err != nil {
		return nil, err
	}
	for _, text := range a.warnings(r.version()) {
		req.Warn("%s", text)
	}
	if err := r.prepareDir(); err != nil {
		return nil, err
	}
	if r.logs, err = openLogs(req.RunDir, around.Secrets); err != nil {
		return nil, err
	}
	around.AtEnd(func() { r.report(r.logs.close()) })
	if r.confinement, err = r.confined(); err != nil {
		return nil, err
	}
	if c := r.confinement; c != nil {
		around.AtEnd(func() { r.report(c.close()) })
	}
	if err := r.planted(); err != nil {
		return nil, err
	}
	total := &expired{what: "worked", key: "timeout", time: r.limits.Total, of: r.limits.whole}
	timed, cancel := context.WithTimeoutCause(ctx, r.limits.Total, total)
	r.ctx = timed
	around.AtEnd(cancel)
	r.host = &Host{launch: r.launch, limits: r.limits, held: r.confinement, outer: ctx, mail: req.Messages, rand: r.env.Rand}
	r.transport = lines{adapter: a}
	if a.Transport != nil {
		r.transport = a.Transport()
	}
	around.AtEnd(func() { r.report(r.transport.Close()) })
	return r, nil
}

// locate finds the program and the command that its sessions belong to.
func (r *runner) locate(ctx context.Context) error {
	a := r.adapter
	if a.Commanded {
		r.command, r.words = strings.Join(r.extra, " "), r.extra
		a.Program, a.Aliases, a.Probe.None = r.extra[0], nil, true
		r.adapter.Program, r.extra = filepath.Base(r.extra[0]), r.extra[1:]
	}
	var err error
	r.program, err = find(ctx, a, r.env, string(r.sessions))
	return err
}

// prepareDir creates the directory for the files of calls.
func (r *runner) prepareDir() error {
	if r.runDir = r.req.RunDir; r.runDir != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", protocol.AgentName(r.adapter.Name)+"-")
	if err != nil {
		return err
	}
	r.runDir = dir
	r.around.AtEnd(func() { r.report(os.RemoveAll(dir)) })
	return nil
}

// report warns about a secondary failure.
func (r *runner) report(err error) {
	if err != nil {
		r.req.Warn("%v", err)
		r.around.Log.Warn(err.Error(), "program", r.adapter.Program)
	}
}

// note adds a note to the step's detail and the run's log.
func (r *runner) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.notes = append(r.notes, text)
	r.req.Log(text, "program", r.adapter.Program)
}

func (r *runner) version() Version { return ParseVersion(r.program.Version) }

// launch returns the parameters for starting a call's program.
func (r *runner) launch(inv Invocation) (launch, error) {
	id, err := newUUID(r.env.Rand)
	if err != nil {
		return launch{}, err
	}
	if r.launched {
		r.around.EndChildren() // left by an earlier call, they would interfere
	}
	r.launched = true
	if err := r.around.Entered(); err != nil {
		return launch{}, err
	}
	if err := r.grant(inv.Own); err != nil {
		return launch{}, err
	}
	inv.Bin, inv.Dir = cmp.Or(inv.Bin, r.program.Path), cmp.Or(inv.Dir, r.cwd)
	fmt.Fprintf(r.logs.stderr, "== %s %s\n", inv.Bin, strings.Join(shown(inv.Args), " "))
	return launch{
		path: inv.Bin, inv: inv, env: append(environment(r.env.Environ, r.adapter, inv), r.mark),
		more:   r.seesMore(),
		marker: markerVariable + "=" + id, confinement: r.confinement, stdout: r.logs.stdout, stderr: r.logs.stderr,
	}, nil
}

// shown returns arguments for a log, with long prompts shortened.
func shown(args []string) []string {
	const longest = 80
	out := make([]string, len(args))
	for i, arg := range args {
		if out[i] = arg; len(arg) > longest || strings.ContainsAny(arg, "\n\r") {
			out[i] = fmt.Sprintf("<%d bytes>", len(arg))
		}
	}
	return out
}

func (r *runner) fail(out tried) error {
	if out.Error == errorkind.BadUsage { // the cached version may be outdated
		_ = durable.OS().Remove(probeFile(string(r.sessions), r.program.Path))
	}
	e := &Error{Program: r.adapter.Program, Kind: out.Error, Text: r.adapter.Program + " " + what(out)}
	if message := Excerpt(plaintext.Strip(out.Message)); message != "" {
		e.Text += ": " + message
	}
	if r.req.RunDir != "" && unexplained(out) {
		e.Logs = filepath.Join(r.req.RunDir, stdoutFile) + " and " + stderrFile
	}
	if out.Error == errorkind.Auth {
		e.Hint = r.adapter.Login
	}
	if hint, ok := remedies[out.Error]; ok && (out.Error != errorkind.Denied || r.permission != Bypass) {
		e.Hint = hint
		if out.Error == errorkind.Server && r.resume && out.canContinue(r.adapter.Sessions) {
			e.Hint += ": the session is continued"
		}
	}
	e.SandboxHints = r.sandboxHints(out)
	if out.Hint != "" {
		e.Hint = strings.ReplaceAll(out.Hint, "<alias>", cmp.Or(r.req.Alias, "<alias>"))
	}
	return e
}

// unexplained reports whether the user must inspect the program's output.
func unexplained(out tried) bool {
	return out.Kind == Incomplete || out.Kind == Timeout || out.Error == Crashed || out.Error == errorkind.Unknown
}

// what describes how a call failed.
func what(out tried) string {
	switch out.Kind {
	case Incomplete:
		return "exited without a readable answer"
	case MaxTurns:
		return "stopped at its limit of turns, in a session that cannot be continued"
	case Budget:
		return "stopped at its limit of cost, in a session that cannot be continued"
	case Timeout:
		return "was stopped"
	case Refusal:
		return "declines to do this"
	case Interrupted:
		return "was interrupted"
	}
	if text, ok := reasons[out.Error]; ok {
		return text
	}
	return "failed"
}

// reasons describe each kind of failure.
var reasons = map[errorkind.Kind]string{
	errorkind.Auth:            "is not logged in, or its key was refused",
	errorkind.RateLimit:       "is held up by its provider's rate limit",
	errorkind.Quota:           "has used its account's quota",
	errorkind.Server:          "cannot reach its model, or the model's server failed",
	errorkind.BadRequest:      "sent a request that its model's endpoint refused",
	errorkind.Context:         "has a conversation that is too long for its model",
	errorkind.SessionNotFound: "does not know the session",
	errorkind.SessionInUse:    "reports that the session is in use",
	errorkind.UntrustedDir:    "does not trust the working directory",
	errorkind.Denied:          "was not allowed to do what it wanted",
	errorkind.BadUsage:        "does not know these arguments",
	Crashed:                   "exited before its work was done",
}

// remedies are general advice for each kind of failure.
var remedies = map[errorkind.Kind]string{
	errorkind.RateLimit: "wait, then retry the step",
	errorkind.Quota:     "add credit or wait for the reset; to use another agent: uwf thread step --agent ALIAS",
	errorkind.Server:    "retry the step",
	errorkind.BadUsage:  "check the agent's args in config.yaml, and the program's version",
	errorkind.Denied:    "uwf config set agents.<alias>.permission full",
}

// result returns what is known about a call, whatever its outcome.
func (r *runner) result(out tried) agentkit.Result {
	version := out.version
	if !version.Known() {
		version = r.version()
	}
	name := strings.TrimSpace(r.adapter.Program + " " + version.String())
	outcome := string(out.Kind)
	if out.Error != "" {
		outcome += " " + string(out.Error)
	}
	if r.usedUpRun(out) {
		outcome += "; " + protocol.OutcomeOfRun
	}
	return agentkit.Result{
		SessionID:   cmp.Or(out.Session, out.task.session),
		SessionMark: out.Mark,
		Detail: &protocol.Detail{
			Model: cmp.Or(out.model, r.model), AgentVersion: name,
			Outcome: strings.Join(slices.Concat([]string{outcome}, r.notes, []string{r.held}), "; "),
		},
	}
}

// conclude turns the last call into an answer, a reason to wait, or an error.
func (r *runner) conclude(res *agentkit.Result, out tried) error {
	// A call that was refused at once reports no session, but an earlier call or try may have worked in one.
	continues := out.canContinue(r.adapter.Sessions) || (r.worked || r.req.Interrupted) && out.task.session != "" && !r.adapter.Sessions.None
	switch out.Kind {
	case OK:
		return r.answered(res, out)
	case Incomplete:
		if out.text != "" && !out.Truncated && (isFramed(out.text) || !continues) {
			return r.answered(res, out)
		}
		if continues {
			res.Suspend = r.adapter.Program + " gave no answer, even when asked again. " + r.resumeHint(out)
			return nil
		}
	case MaxTurns, Budget, Timeout:
		if continues {
			res.Suspend = r.limitText(out) + " " + r.resumeHint(out)
			return nil
		}
	case Failed:
		if continues && r.needsUser(out) {
			res.Suspend = r.limitText(out) + " " + r.resumeHint(out)
			res.Limit = &agentkit.Failure{Kind: protocol.FailedRateLimit, RetryAt: out.resetsAt(r.env.Now())}
			return nil
		}
	}
	return r.failure(out, r.fail(out))
}

// needsUser reports whether only time or money helps and a person must decide: the engine will neither switch to
// another agent nor retry soon.
func (r *runner) needsUser(out tried) bool {
	switch {
	case r.req.Yields:
	case out.Error == errorkind.Quota:
		return true
	case out.Error == errorkind.RateLimit:
		now := r.env.Now()
		return r.req.Retries == 0 || out.resetsAt(now).After(now.Add(time.Minute))
	}
	return false
}

// failure classifies an error.
func (r *runner) failure(out tried, err error) error {
	f := &agentkit.Failure{Err: err}
	if at := r.adapter.Repeats; at != nil && (out.Error == errorkind.RateLimit || out.Error == errorkind.Server) {
		f.Repeated = at(Call{Retries: r.req.Retries, Env: r.env.Get})
	}
	switch {
	case out.Kind == Timeout:
		f.Kind = protocol.FailedTimeout
	case out.Error == errorkind.RateLimit, out.Error == errorkind.Quota:
		f.Kind, f.RetryAt = protocol.FailedRateLimit, out.resetsAt(r.env.Now())
	case out.Error == errorkind.Server:
		f.Kind = protocol.FailedServer
	case out.Error == Crashed:
		f.Kind = protocol.FailedCrash
	default:
		return err
	}
	return f
}

// answered uses the text of a call as the answer. It must be the last turn, where readers look for it.
// Without turns, the kit makes it the only one.
func (r *runner) answered(res *agentkit.Result, out tried) error {
	if r.hasTurns && out.shown != clip(out.text) && out.Value == nil {
		turn := protocol.Turn{Role: protocol.TurnAssistant, Content: clip(out.text)}
		if err := r.addTurn(context.WithoutCancel(r.ctx), turn); err != nil {
			return err
		}
	}
	if r.answer = out.text; len(out.text) > maxContent {
		r.req.Warn("the answer of %s is larger than 1 MiB, so its middle is not stored; until the next step, all "+
			"of it is in %s",
			r.adapter.Program, filepath.Join(r.req.RunDir, stdoutFile))
	}
	if res.Output = out.text; out.Value != nil {
		res.Output, res.Value = "", out.Value
	}
	if r.adapter.Sessions.None || res.SessionID == "" && r.adapter.Sessions.Optional {
		id, err := newUUID(r.env.Rand)
		res.SessionID = madeUp + id
		return err
	}
	if res.SessionID == "" {
		return r.fail(tried{Outcome: Outcome{
			Kind: Failed, Error: errorkind.Unknown, Message: "it answered but reported no session id",
		}})
	}
	return nil
}

// usedUpRun reports whether the limit of the whole run is used up, not only the agent's.
func (r *runner) usedUpRun(out tried) bool { return out.Kind == Budget && r.ofRun }

// resumeHint describes what resuming does; the config may disable continuing sessions.
func (r *runner) resumeHint(out tried) string {
	if r.usedUpRun(out) {
		return "The run's limit is reached; to raise it: uwf thread resume " + r.req.Thread + " --raise-limit"
	}
	if !r.resume {
		return "Resume the thread to continue in a new session (agents." + r.req.Alias + ".resume is false)."
	}
	return "Resume the thread to continue in its session."
}

// limitText describes which limit was reached.
func (r *runner) limitText(out tried) string {
	switch out.Kind {
	case MaxTurns, Budget: // the user's own arguments may override the configured limit
		of := map[OutcomeKind]string{MaxTurns: "turns", Budget: "cost"}[out.Kind]
		message := strings.TrimSuffix(Excerpt(plaintext.Strip(out.Message)), ".")
		return fmt.Sprintf("%s stopped at its limit of %s: %s.", r.adapter.Program, of, message)
	case Failed:
		return fmt.Sprintf("%s %s: %s.", r.adapter.Program, reasons[out.Error], strings.TrimSuffix(Excerpt(plaintext.Strip(out.Message)), "."))
	}
	return fmt.Sprintf("%s was stopped: %s.", r.adapter.Program, out.Message)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
