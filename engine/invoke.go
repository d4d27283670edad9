package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/secret"
)

// prepare creates what the agent needs before it starts: its prompt, an empty run directory, the lock that it
// inherits, and the record of the run. The prompt isn't flushed, since nothing durable refers to it.
func (a *attempt) prepare(ctx context.Context) (*durable.Held, error) {
	a.leaveWait()
	write := a.dir.Update
	if last := a.dir.Read(); !last.Missing && last.Status != rundir.Done {
		write = a.dir.Write // only records without an error precede others
		a.endAgents()       // a killed try may have left some
	}
	release, err := a.reader.LockStore(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b := a.reader.Batch()
	if _, err := b.Add(ctx, protocol.Text(a.task.prompt)); err != nil {
		return nil, err
	}
	if err := b.Put(ctx); err != nil {
		return nil, fmt.Errorf("store the prompt: %w", err)
	}
	if err := a.dir.Clear(); err != nil {
		return nil, err
	}
	lock, err := a.dir.Lock(ctx, rundir.LockPatience)
	if err != nil {
		return nil, fmt.Errorf("lock the run: %w", err)
	}
	if err := write(a.record); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

// invoke runs the agent until it ends.
func (a *attempt) invoke(ctx context.Context, lock *durable.Held) (agentproc.Outcome, error) {
	inv := agentproc.Invocation{
		Command: a.cmd.Argv[0], Args: a.arguments(), Dir: a.task.cwd, Env: a.environment(),
		Workflow: a.pos.Workflow.Name, Role: a.task.role, Alias: a.cmd.Name,
		Plain: a.cmd.Plain != nil, Apart: a.cmd.Plain != nil && a.cmd.Plain.Parse != "",
		RunDir: a.dir.Path, Lock: lock, Timeout: a.cmd.Timeout, Grace: a.e.grace(),
		Started: func(pid int) error {
			a.record.Pid, a.record.Birth, a.record.Status = pid, proc.Birth(pid), rundir.Running
			a.locked.note(locker.Process{Pid: pid, Birth: a.record.Birth})
			if err := a.dir.Update(a.record); err != nil {
				return err
			}
			a.report(Event{Kind: AgentStarted})
			return nil
		},
	}
	switch follow := a.e.Turns && a.e.Events != nil; {
	case follow && inv.Plain:
		secrets := a.reader.Secrets()
		inv.Printed = func(line string) {
			t := oscommand.Turn(secrets.Hide(line))
			a.report(Event{Kind: Writing, Turn: &t})
		}
	case follow:
		inv.OnTurn = func(line protocol.TurnLine) {
			// Skip a turn that isn't readable yet; the detail will contain it.
			t, err := cas.Read[protocol.Turn](ctx, a.reader.Store, line.Hash)
			switch {
			case err != nil:
			case line == protocol.NewTurnLine(line.Hash):
				a.report(Event{Kind: Turn, Turn: &t})
			default:
				a.report(Event{Kind: Writing, Turn: &t})
			}
		}
	}
	if inv.Plain {
		if err := oscommand.TooLong(a.cmd.Argv, a.cmd.Env); err != nil {
			return agentproc.Outcome{}, err
		}
	}
	inv.Inherit = a.pass.Inherited()
	defer func() { a.locked.note(locker.Process{}) }()
	run := a.e.Run
	if run == nil {
		run = agentproc.Run
	}
	if inv.Plain {
		a.before = proc.Now()
	}
	return run(ctx, inv)
}

// arguments returns the agent's arguments in the form that it expects.
func (a *attempt) arguments() []string {
	args := slices.Clone(a.cmd.Argv[1:])
	switch {
	case a.cmd.Plain != nil:
		return args
	case a.cmd.Form == "named":
		return append(args, protocol.FlagThread, a.locked.id, protocol.FlagRole, a.task.role, protocol.FlagPrompt,
			a.task.prompt)
	case a.cmd.Form == "positional": // the rest is in the environment
		return append(args, a.locked.id, a.task.role)
	}
	return append(args, a.locked.id, a.task.role, protocol.FlagPromptRef, string(a.task.promptHash))
}

// environment returns the agent's environment: ours without the secrets of .env that aren't meant for it, its
// own variables from the config, and the facts of this step, which nothing overrides. Agents that use our kit
// read .env themselves. A command gets only the secrets that the config grants it, since it may print them
// and its output is stored. It also gets the mark by which its processes are found.
func (a *attempt) environment() []string {
	set := maps.Clone(a.cmd.Env)
	if set == nil {
		set = map[string]string{}
	}
	maps.Copy(set, map[string]string{
		protocol.EnvHome: a.reader.Dirs.Home, protocol.EnvStore: a.reader.Dirs.Store, protocol.EnvRunDir: a.dir.Path,
		protocol.EnvHead: string(a.pos.Thread.Head), protocol.EnvThread: a.locked.id, protocol.EnvRole: a.task.role,
		protocol.EnvPrompt: string(a.task.promptHash), protocol.EnvLimitBase: strconv.Itoa(a.task.limitBase),
		protocol.EnvAgent: a.cmd.Alias, protocol.EnvProject: a.e.Project, protocol.EnvBudget: a.budget(),
		protocol.EnvVisitKey: a.visitKey(), protocol.EnvSnapshot: a.kept.SnapshotSpec(), protocol.EnvRetries: strconv.Itoa(a.retries),
	})
	if dir := a.pos.State.Artifacts; dir != "" {
		set[protocol.EnvArtifacts] = dir
	}
	set[protocol.EnvInputs] = create.InputsText(a.pos.Thread.Start)
	if a.cmd.Plain != nil {
		maps.DeleteFunc(set, func(key, _ string) bool { return oscommand.OfAgent(key) })
		for _, name := range a.granted {
			if value := a.reader.Env.Get(name); value != "" {
				set[name] = value
			}
		}
	}
	if runtime.GOOS != "windows" {
		set["PWD"] = a.task.cwd // otherwise programs would use ours
	}
	if a.e.Uwf != "" {
		set[protocol.EnvBin] = a.e.Uwf
	}
	pass, secrets := a.cmd.PassEnv, (*secret.Set)(nil)
	if a.cmd.Plain != nil {
		pass, secrets = nil, a.reader.Secrets()
	}
	var environ []string
	for _, kv := range config.Handed(a.e.given(), a.reader.Env, pass) {
		key, value, _ := strings.Cut(kv, "=")
		if _, ours := set[key]; ours || a.cmd.Plain != nil && (oscommand.OfAgent(key) || secret.Guarded(key, value) ||
			secrets.Holds(value)) {
			continue
		}
		environ = append(environ, kv)
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		environ = append(environ, key+"="+set[key])
	}
	if a.cmd.Plain == nil {
		return environ
	}
	return append(proc.OwnPath(environ, a.task.cwd), a.mark())
}

// budget returns the remaining budget of the run as the agent receives it.
func (a *attempt) budget() string {
	text, err := json.Marshal(a.pos.Budget())
	if err != nil { // no limit is infinite or NaN, so JSON can represent them all
		return ""
	}
	return string(text)
}

// given returns the environment without .env.
func (e *Engine) given() []string {
	if e.BaseEnv == nil {
		return e.Reader.Env.Environ
	}
	return e.BaseEnv
}

// explain adds the facts for a hint to an agent's error.
func (a *attempt) explain(ctx context.Context, ran agentproc.Outcome, err error) error {
	var missing *agentproc.NotFoundError
	if a.cmd.Plain != nil {
		return oscommand.Explain(err, a.task.role, "thread", a.locked.id, "again", a.again(), "dir", a.dir.Path)
	}
	if errors.As(err, &missing) {
		return a.e.Casting().Unstartable(ctx, a.cmd, missing)
	}
	if !fault.IsAgentFailure(err) {
		return err
	}
	_, gone := os.Stat(a.e.Uwf) // agents may need it to submit their answer
	e := &protocol.Error{
		Code: protocol.CodeAgent, Message: err.Error(), Err: err, Machine: a.e.Uwf != "" && errors.Is(gone,
			fs.ErrNotExist),
	}
	var noResult *agentproc.ResultError
	var failed *agentproc.ExitError
	silent, wrapped := errors.As(err, &noResult), ""
	if silent || errors.As(err, &failed) && a.cmd.Foreign() {
		wrapped = "uwf-exec -- " + plaintext.Literal(a.cmd.Argv)
	}
	if silent && ran.Stderr != "" {
		e.Message += "\nthe end of its stderr:\n" + ran.Stderr
	}
	return e.Because("agent-failed", "wrapped", wrapped, "thread", a.locked.id, "again", a.again(), "dir", a.dir.Path)
}
