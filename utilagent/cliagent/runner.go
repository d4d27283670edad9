package cliagent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programs"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// runner does one step with a program: the run itself and its corrections.
type runner struct {
	adapter Adapter
	req     *agentkit.Request
	around  *runenv.Run
	env     env.Env // of the agent, without what the program is not to see
	settings
	program     program
	command     string // what sessions belong to
	extra       []string
	words       []string // of the command line, if it is the user's
	cwd         string
	runDir      string
	mark        string // of all that is started in this run
	shelf       shelf
	logs        *logs
	host        *Host
	transport   Transport
	boxProgram  string // uwf-box; "": it cannot be had here
	confinement *confinement
	held        string   // for the detail: what confinement is in force
	moved       []string // variables: where the program finds what it has apart
	used        []string // sessions that the program has used
	hidden      []string // from what a sandbox of the program's own runs
	refused     refusals
	ctx         context.Context // of the step; it ends when its time is up
	closers     []func()

	notes    []string // for the detail
	answer   string   // of the last call
	pushed   bool     // an incomplete run has been asked to finish
	refusals int      // it was told to go on after one
	fresh    bool     // the session was given up once
	told     bool     // the run or correction has a turn
	worked   bool     // the model has said something, in some call of the step
}

// tell stores a turn.
func (r *runner) tell(ctx context.Context, t protocol.Turn) error {
	r.told = true
	return r.req.Turn(ctx, t)
}

// show tells watchers what is going on; it is not part of the step.
func (r *runner) show(text string) {
	// This is only for watchers: whatever breaks here breaks at the next turn, too.
	_ = r.req.Writing(context.WithoutCancel(r.ctx), protocol.Turn{Role: protocol.TurnSystem, Content: text})
}

// newRunner finds the program and everything that its calls need.
func newRunner(ctx context.Context, a Adapter, extra []string, req *agentkit.Request) (*runner, error) {
	around := runenv.Of(ctx)
	r := &runner{adapter: a, req: req, around: around, env: around.Env, extra: extra, command: a.Program, cwd: realDir(req.Cwd), ctx: ctx}
	r.mark = around.Mark() // what it ends, it ends after our own orderly close
	req.AtEnd(r.close)
	var err error
	if r.settings, err = settingsOf(ctx, a, req, around); err != nil {
		return nil, err
	}
	r.env.Environ = req.Environ(slices.Concat(a.Logins, r.passEnv)...)
	r.shelf = shelf(filepath.Join(around.Dirs.Sessions(), protocol.AgentName(a.Name)))
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
	r.closers = append(r.closers, func() { r.report(r.logs.close()) })
	if r.confinement, err = r.confined(); err != nil {
		return nil, err
	}
	if c := r.confinement; c != nil {
		r.refused.harmless = programs.Harmless(r.driven())
		r.closers = append(r.closers, func() {
			r.report(c.close())
			if line := r.refused.found(); line != "" {
				req.Warn("%s runs confined, and said: %s", r.adapter.Program, around.Secrets.Hide(line))
			}
		})
	}
	if err := r.planted(); err != nil {
		return nil, err
	}
	total := &expired{what: "worked", key: "timeout", time: r.limits.Total, of: r.limits.whole}
	timed, cancel := context.WithTimeoutCause(ctx, r.limits.Total, total)
	r.ctx = timed
	r.closers = append(r.closers, cancel)
	r.host = &Host{launch: r.launch, limits: r.limits, held: r.confinement, outer: ctx, mail: req.Letters, rand: r.env.Rand}
	r.transport = lines{adapter: a}
	if a.Transport != nil {
		r.transport = a.Transport()
	}
	r.closers = append(r.closers, func() { r.report(r.transport.Close()) })
	return r, nil
}

// locate finds the program, and what its sessions belong to.
func (r *runner) locate(ctx context.Context) error {
	a := r.adapter
	if a.Commanded {
		r.command, r.words = strings.Join(r.extra, " "), r.extra
		a.Program, a.Aliases, a.Probe.None = r.extra[0], nil, true
		r.adapter.Program, r.extra = filepath.Base(r.extra[0]), r.extra[1:]
	}
	var err error
	r.program, err = find(ctx, a, r.env, string(r.shelf))
	return err
}

// prepareDir makes the directory for the files of calls.
func (r *runner) prepareDir() error {
	if r.runDir = r.req.RunDir; r.runDir != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", protocol.AgentName(r.adapter.Name)+"-")
	if err != nil {
		return err
	}
	r.runDir = dir
	r.closers = append(r.closers, func() { r.report(os.RemoveAll(dir)) })
	return nil
}

// close ends everything that still runs, in reverse order.
func (r *runner) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
	r.closers = nil
}

// report reports what went wrong beside the work.
func (r *runner) report(err error) {
	if err != nil {
		r.req.Warn("%v", err)
		r.around.Log.Warn(err.Error(), "program", r.adapter.Program)
	}
}

// note puts something into the step's detail, and the run's log.
func (r *runner) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.notes = append(r.notes, text)
	r.req.Log(text, "program", r.adapter.Program)
}

func (r *runner) version() Version { return ParseVersion(r.program.Version) }

// launch is how a call's program is started.
func (r *runner) launch(inv Invocation) (launch, error) {
	id, err := newUUID(r.env.Rand)
	if err != nil {
		return launch{}, err
	}
	r.around.EndChildren() // of an earlier call: it would work beside this one
	if err := r.grant(inv.Own); err != nil {
		return launch{}, err
	}
	inv.Bin, inv.Dir = cmp.Or(inv.Bin, r.program.Path), cmp.Or(inv.Dir, r.cwd)
	fmt.Fprintf(r.logs.stderr, "== %s %s\n", inv.Bin, strings.Join(shown(inv.Args), " "))
	return launch{
		path: inv.Bin, inv: inv, env: append(environment(r.env.Environ, r.adapter, inv), r.mark),
		more:   r.seesMore(),
		marker: markerVariable + "=" + id, confinement: r.confinement, stdout: r.logs.stdout, stderr: io.MultiWriter(r.logs.stderr, &r.refused),
	}, nil
}

// shown are arguments fit for a log: a prompt among them is cut.
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

// stopped returns why the step must end, if it must.
func (r *runner) stopped() error {
	if r.host.outer.Err() != nil {
		return context.Cause(r.host.outer)
	}
	return nil
}
