package oscommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// Ran is a command that has ended, or was ended.
type Ran struct {
	agentproc.Outcome
	Argv []string
	Dir  runfiles.Dir // that of the run, which has what it printed
}

// NotRun is why a command has no answer that was not run to its end; nil: it was. stopped: a
// person has stopped it.
func (r Ran) NotRun(stopped bool) error {
	if !stopped && r.Signal == "" && r.ExitCode != NotExecutable && r.ExitCode != NotFound {
		return nil
	}
	said := agentproc.Tail(r.Dir.File(runfiles.StderrFile))
	if said == "" {
		said = agentproc.Tail(r.Dir.File(runfiles.OutputFile))
	}
	return &NoAnswerError{Argv: r.Argv, Ran: r.Outcome, Said: said}
}

// Status is the answer of a command that prints no data: how it ended, and the end of what it
// printed.
func (r Ran) Status() (extract.Output, error) {
	text, cut, err := tail(r.Dir.File(runfiles.OutputFile), moderator.CommandOutput)
	status := moderator.CommandPassed
	if r.ExitCode != 0 {
		status = moderator.CommandFailed
	}
	return extract.Output{Value: map[string]any{
		protocol.StatusKey: status, "exitCode": int64(r.ExitCode), "output": text, "truncated": cut,
	}}, err
}

// Data is the answer that a command has printed, as JSON or a text.
func (r Ran) Data(ctx context.Context, json bool, role extract.Role) (output extract.Output, err error) {
	data, err := careful.ReadFile(r.Dir.File(runfiles.OutputFile), dataKept, careful.NoFollow)
	var big *careful.TooBigError
	if errors.As(err, &big) {
		return output, &NoAnswerError{Argv: r.Argv, Ran: r.Outcome, Why: fmt.Sprintf("it printed more than the %d bytes that its data may have", dataKept)}
	}
	if err != nil {
		return output, err
	}
	if json {
		output, err = ofJSON(ctx, data, role)
	} else {
		output, err = extract.Text(ctx, strings.ToValidUTF8(string(data), "\uFFFD"), role)
	}
	var invalid *extract.InvalidError
	if errors.As(err, &invalid) {
		err = &NoAnswerError{Argv: r.Argv, Ran: r.Outcome, Why: "what it printed is not the role's data: " + invalid.Error(), Said: r.Stderr}
	}
	return output, err
}

// Detail is what was run, all that it printed, and how it ended.
func (r Ran) Detail(ctx context.Context, b *cas.Batch, atMs int64) (protocol.Detail, error) {
	w := turns{batch: b, atMs: atMs}
	argv := make([]any, len(r.Argv))
	for i, word := range r.Argv {
		argv[i] = strings.ToValidUTF8(word, "\uFFFD")
	}
	w.add(ctx, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: callID, Name: "run", Args: map[string]any{"argv": argv}}}})
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		w.addFile(ctx, r.Dir.File(name), outputKept)
	}
	end, _, err := tail(r.Dir.File(runfiles.OutputFile), moderator.CommandOutput)
	outcome := fmt.Sprintf("exit status %d", r.ExitCode)
	if end != "" && !strings.HasSuffix(end, "\n") {
		end += "\n"
	}
	w.add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: end + "[" + outcome + "]" + r.Held})
	return protocol.Detail{Capture: protocol.CaptureTurns, Turns: w.turns, Outcome: outcome}, errors.Join(w.err, err)
}

// Argv are the words of the command that a detail is of; nil: it says none.
func Argv(ctx context.Context, nodes cas.Reader, detail protocol.Hash) ([]string, error) {
	d, err := cas.Read[protocol.Detail](ctx, nodes, detail)
	if err != nil || len(d.Turns) == 0 {
		return nil, err
	}
	turn, err := cas.Read[protocol.Turn](ctx, nodes, d.Turns[0])
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

// Turn is what a command at work has printed, as it is shown.
func Turn(text string) protocol.Turn {
	return protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID, Content: text}
}

// Hide hides what is secret in all that a command has printed into the directory of its run,
// before anybody reads it. What cannot be gone through is removed.
func Hide(disk durable.FS, set *secret.Set, run runfiles.Dir) error {
	if set.Empty() {
		return nil
	}
	var errs []error
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		if err := hideIn(disk, set, run.File(name)); err != nil {
			errs = append(errs, err, disk.Remove(run.File(name)))
		}
	}
	return errors.Join(errs...)
}

// hideIn replaces a file by one in which the secrets of a set are hidden.
func hideIn(disk durable.FS, set *secret.Set, path string) (err error) {
	from, size, err := printed(path)
	if from == nil || err != nil {
		return err
	}
	defer from.Close()
	temp, err := disk.WriteTemp(path, nil, 0o600, durable.NoFlush)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = disk.Remove(temp) // the first error says more
		}
	}()
	to, err := careful.OpenFile(temp, os.O_WRONLY|os.O_APPEND, 0, careful.NoFollow)
	if err != nil {
		return err
	}
	hiding := set.NewWriter(to)
	_, err = io.CopyBuffer(struct{ io.Writer }{hiding}, io.NewSectionReader(from, 0, size), make([]byte, OutputPiece))
	if err = errors.Join(err, hiding.Flush(), to.Close()); err != nil {
		return err
	}
	return disk.Rename(temp, path)
}
