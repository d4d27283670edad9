package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/oscommand"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// A role that is a command: its words are rendered and started without a shell, and
// the status with which it ends is the role's answer. All that it prints is in the
// step's detail, in turns of a piece each, so that it never is in memory as a whole.

// ofAgent reports whether a variable is only for who makes a step.
func ofAgent(key string) bool {
	switch key {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvPrompt, protocol.EnvLimitBase, protocol.EnvAgent, protocol.EnvSnapshot:
		return true
	}
	return false
}

// mark is the entry in the environment of a command by which what it has left behind
// is found, be it in another group and session.
func (a *attempt) mark() string { return protocol.EnvCommand + "=" + a.locked.id + "." + a.record.ID() }

// endLeft ends what a command has left behind, however it has ended itself.
func (a *attempt) endLeft() {
	if _, err := proc.KillMarked(a.mark()); err != nil {
		a.warn("what the command has started could not all be ended: " + err.Error())
	}
}

// ofCommand makes the step of a command that has ended.
func (a *attempt) ofCommand(ctx context.Context, ran agentproc.Outcome) (protocol.Result, error) {
	switch {
	case a.dir.StopRequested(a.record), ran.Signal != "", ran.ExitCode == oscommand.NotExecutable, ran.ExitCode == oscommand.NotFound:
		return protocol.Result{}, &oscommand.NoAnswerError{Argv: a.cmd.Argv, Ran: ran, Said: a.said()}
	}
	release, err := a.holdStore(ctx)
	if err != nil {
		return protocol.Result{}, err
	}
	defer release()
	b := a.batch()
	output, by, err := a.answered(ctx, b, ran)
	if err != nil {
		return protocol.Result{}, err
	}
	detail, err := a.commandDetail(ctx, b, ran)
	if err != nil {
		return protocol.Result{}, err
	}
	result, err := a.submit(ctx, b, own{agent: protocol.CommandAgent, output: output, by: by, detail: detail})
	if err == nil { // all of it is in the detail now
		_ = a.FS.Remove(a.dir.File(runfiles.OutputFile))
	}
	return result, err
}

// answered is what the command answers: how it ended and the end of what it printed,
// or the data that it printed.
func (a *attempt) answered(ctx context.Context, b *cas.Batch, ran agentproc.Outcome) (extract.Output, protocol.ExtractedBy, error) {
	if a.cmd.Plain.Parse == "" {
		text, cut, err := oscommand.Tail(a.dir.File(runfiles.OutputFile), moderator.CommandOutput)
		status := moderator.CommandPassed
		if ran.ExitCode != 0 {
			status = moderator.CommandFailed
		}
		return extract.Output{Value: map[string]any{
			protocol.StatusKey: status, "exitCode": int64(ran.ExitCode), "output": text, "truncated": cut,
		}}, protocol.ByValue, err
	}
	role, err := a.judge(ctx, b)
	if err != nil {
		return extract.Output{}, "", err
	}
	data, err := careful.ReadFile(a.dir.File(runfiles.OutputFile), oscommand.DataKept, careful.NoFollow)
	var big *careful.TooBigError
	if errors.As(err, &big) {
		return extract.Output{}, "", &oscommand.NoAnswerError{Argv: a.cmd.Argv, Ran: ran, Why: fmt.Sprintf("it printed more than the %d bytes that its data may have", oscommand.DataKept)}
	}
	if err != nil {
		return extract.Output{}, "", err
	}
	output, by := extract.Output{}, protocol.ByFrontmatter
	if a.cmd.Plain.Parse == protocol.ParseJSON {
		by = protocol.ByValue
		output, err = oscommand.OfJSON(ctx, data, role)
	} else {
		output, err = extract.Text(ctx, strings.ToValidUTF8(string(data), "\uFFFD"), role)
	}
	var invalid *extract.InvalidError
	if errors.As(err, &invalid) {
		err = &oscommand.NoAnswerError{Argv: a.cmd.Argv, Ran: ran, Why: "what it printed is not the role's data: " + invalid.Error(), Said: ran.Stderr}
	}
	return output, by, err
}

// commandDetail is what was run, all that it printed, and how it ended.
func (a *attempt) commandDetail(ctx context.Context, b *cas.Batch, ran agentproc.Outcome) (protocol.Detail, error) {
	w := oscommand.Turns{Batch: b, AtMs: a.nowMs()}
	argv := make([]any, len(a.cmd.Argv))
	for i, word := range a.cmd.Argv {
		argv[i] = strings.ToValidUTF8(word, "\uFFFD")
	}
	w.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: oscommand.CallID, Name: "run", Args: map[string]any{"argv": argv}}}})
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		w.AddFile(ctx, a.dir.File(name))
	}
	end, _, err := oscommand.Tail(a.dir.File(runfiles.OutputFile), moderator.CommandOutput)
	outcome := fmt.Sprintf("exit status %d", ran.ExitCode)
	if end != "" && !strings.HasSuffix(end, "\n") {
		end += "\n"
	}
	w.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: end + "[" + outcome + "]"})
	return protocol.Detail{Capture: protocol.CaptureTurns, Turns: w.Turns, Outcome: outcome}, errors.Join(w.Err, err)
}

// ranBefore are the words of the command that a step of the thread has run: who
// answers its suspension, or pokes it, wants the same once more.
func (e *Engine) ranBefore(ctx context.Context, s thread.Step) ([]string, error) {
	d, err := cas.Read[protocol.Detail](ctx, e.Nodes(), s.Detail)
	if err != nil || len(d.Turns) == 0 {
		return nil, err
	}
	turn, err := cas.Read[protocol.Turn](ctx, e.Nodes(), d.Turns[0])
	if err != nil || len(turn.ToolCalls) != 1 {
		return nil, err
	}
	args, _ := turn.ToolCalls[0].Args.(map[string]any)
	words, _ := args["argv"].([]any)
	argv := make([]string, len(words))
	for i, word := range words {
		argv[i], _ = word.(string)
	}
	return argv, nil
}

// onceMore gives a task of a role that is a command the words of the thread's last
// step, if it has none.
func (e *Engine) onceMore(ctx context.Context, pos *status.Position, t task) (task, error) {
	if t.command != nil || pos.Workflow.Roles[t.role].Player() != protocol.PlayedByCommand || pos.Thread.Last == nil {
		return t, nil
	}
	argv, err := e.ranBefore(ctx, *pos.Thread.Last)
	if err == nil && len(argv) == 0 {
		err = fault.New(protocol.CodeInvalid, "step %s does not say what command it has run", pos.Thread.Last.Hash)
	}
	t.command = argv
	return t, err
}

// PrintedTurn is what a command at work has printed, as it is shown.
func PrintedTurn(text string) protocol.Turn {
	return protocol.Turn{Role: protocol.TurnTool, ToolCallID: oscommand.CallID, Content: text}
}

// said is the end of what the command has printed, fit to be shown.
func (a *attempt) said() string {
	if text := agentproc.Tail(a.dir.File(runfiles.StderrFile)); text != "" {
		return text
	}
	return agentproc.Tail(a.dir.File(runfiles.OutputFile))
}

// explainCommand adds to the failure of a command what to do about it.
func (a *attempt) explainCommand(err error) error {
	var missing *agentproc.NotFoundError
	var gave *oscommand.NoAnswerError
	var flood *agentproc.FloodError
	switch {
	case errors.As(err, &flood):
		return fault.Hinted(fault.New(protocol.CodeAgent, "role %q: %v", a.task.role, flood), a.again()+" tries again", "let it write that to a file of its own; what it printed is in "+a.dir.Path)
	case errors.As(err, &missing):
		return fault.Hinted(oscommand.CannotStart(a.task.role, missing), a.again()+" tries again")
	case errors.As(err, &gave):
		e := &protocol.Error{Code: protocol.CodeAgent, Message: fmt.Sprintf("role %q: %v", a.task.role, err), Err: err}
		return fault.Hinted(e, a.again()+" tries again", "what it printed is in "+a.dir.Path)
	}
	return err
}
