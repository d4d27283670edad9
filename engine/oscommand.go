package engine

import (
	"context"
	"reflect"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/runfiles"
)

// The words of a command role are rendered and started without a shell. The exit status becomes the role's
// answer. The output becomes the step's detail, in pieces of one turn each, so it is never in memory as a
// whole.

// mark returns the entry in a command's environment by which leftover processes are found, even in another
// process group or session.
func (a *attempt) mark() string { return protocol.EnvCommand + "=" + a.locked.id + "." + a.record.ID() }

// endLeft kills the processes that a command left behind, however the command itself ended.
func (a *attempt) endLeft() {
	took := time.Duration(a.e.nowMs()-a.record.StartedAt) * time.Millisecond
	if _, err := a.before.Within(took).KillMarked(a.mark(), a.record.Pid); err != nil {
		a.e.warn("could not end all processes that the command started: " + err.Error())
	}
}

// ofCommand makes a step from a command that has ended.
func (a *attempt) ofCommand(ctx context.Context, outcome agentproc.Outcome) (protocol.Result, error) {
	ran := oscommand.Ran{Outcome: outcome, Argv: a.cmd.Argv, Env: a.cmd.Env, Dir: runfiles.Dir(a.dir.Path),
		Artifacts: a.pos.State.Artifacts}
	if err := ran.NotRun(a.dir.StopRequested(a.record)); err != nil {
		return protocol.Result{}, err
	}
	release, err := a.reader.LockStore(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	defer release()
	b := a.reader.Batch()
	made := own{agent: protocol.CommandAgent, by: protocol.ByValue}
	if parse := a.cmd.Plain.Parse; parse == "" {
		made.output, err = ran.Status()
	} else {
		if parse != protocol.ParseJSON {
			made.by = protocol.ByFrontmatter
		}
		var role extract.Role
		if role, err = a.judge(ctx, b); err == nil {
			made.output, err = ran.Data(ctx, parse == protocol.ParseJSON, role)
		}
	}
	if err != nil {
		return protocol.Result{}, err
	}
	if hidden := a.record.Secrets(a.reader.Secrets(), a.reader.Env).HideValue(made.output.Value); !reflect.DeepEqual(hidden, made.output.Value) {
		made.output.Value = hidden // the secret was encoded in a form that the search missed before
		if err := ran.Print(hidden); err != nil {
			return protocol.Result{}, err
		}
	}
	if made.detail, err = ran.Detail(ctx, b, a.e.nowMs()); err != nil {
		return protocol.Result{}, err
	}
	result, err := a.submit(ctx, b, made)
	if err == nil { // the detail contains all of it
		_ = a.reader.FS.Remove(a.dir.File(runfiles.OutputFile))
	}
	return result, err
}

// onceMore gives the task of a command role the command line of the thread's last step, if it has none.
func (e *Engine) onceMore(ctx context.Context, pos *status.Position, t task) (task, error) {
	if t.command != nil || pos.Workflow.Roles[t.role].Player() != protocol.PlayedByCommand || pos.Thread.Last == nil {
		return t, nil
	}
	argv, env, err := oscommand.Command(ctx, e.Reader.Nodes(), pos.Thread.Last.Detail, pos.State.Artifacts)
	if err == nil && len(argv) == 0 {
		err = fault.New(protocol.CodeInvalid, "step %s does not record its command", pos.Thread.Last.Hash)
	}
	t.command, t.env = argv, env
	return t, err
}
