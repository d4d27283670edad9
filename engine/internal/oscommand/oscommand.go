// Package oscommand handles the results of command roles. It converts output to turns, piece by piece, so
// that it is never in memory as a whole, and explains why a command gave no answer.
package oscommand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/secret"
)

// ofJSON parses a command's output as a single JSON value.
func ofJSON(ctx context.Context, data []byte, r extract.Role) (extract.Output, error) {
	data = bytes.TrimSpace(data)
	value, err := exactjson.Parse(data)
	if err != nil {
		return extract.Output{}, &extract.InvalidError{Reason: "not a single JSON value: " + err.Error()}
	}
	return extract.Value(ctx, value, r)
}

// NoAnswerError means that a command gave no answer.
type NoAnswerError struct {
	Argv   []string
	Ran    agentproc.Outcome
	Reason string // "" if the command could not be run to its end
	Output string
}

func (e *NoAnswerError) Error() string {
	text := fmt.Sprintf("command %s ", plaintext.Word(e.Argv[0]))
	switch {
	case e.Reason != "":
		text += fmt.Sprintf("ended with exit status %d, but %s", e.Ran.ExitCode, e.Reason)
	case e.Ran.Signal != "":
		text += "was ended by signal: " + e.Ran.Signal
	case e.Ran.ExitCode == NotFound:
		text += "ended with exit status 127: a command was not found"
	default:
		text += "ended with exit status 126: a command could not be started"
	}
	if e.Output != "" {
		text += "\nthe end of its output:\n" + e.Output
	}
	return text
}

// Limits of Linux on a single argument or variable, and on all of them together, in bytes.
const (
	maxWord  = 128<<10 - 1
	maxWords = 1536 << 10 // of 2 MiB, which includes the rest of the environment
)

// TooLong returns an error if the arguments or variables of a command are too long for any system. The error
// counts as the fault of the workflow, not of the machine.
func TooLong(argv []string, env map[string]string) error {
	all := 0
	check := func(what string, n int) error {
		most := maxWord
		if all += n; n <= maxWord && all > maxWords {
			what, n, most = "all it is given", all, maxWords
		}
		if n <= most {
			return nil
		}
		return &agentproc.NotFoundError{Command: argv[0], Err: fmt.Errorf("%s has %d bytes, and a program accepts "+
			"at most %d: %w",
			what, n, most, syscall.E2BIG)}
	}
	for i, word := range argv {
		if err := check(fmt.Sprintf("word %d", i), len(word)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if err := check("variable "+name, len(name)+len("=")+len(env[name])); err != nil {
			return err
		}
	}
	return nil
}

// CannotStart returns the error for a command role whose program cannot be started.
func CannotStart(role string, missing *agentproc.NotFoundError) *protocol.Error {
	program := missing.Command
	err := fault.New(protocol.CodeAgent, "role %q: %s", role, strings.Replace(missing.Error(), "agent command",
		"command", 1))
	err.Err = missing
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return err.Because("program-of-workspace", "program", "./"+filepath.Base(program))
	case missing.Absent() && filepath.Base(program) == program:
		return err.Because("program-not-found")
	}
	return err
}

// Ran is a command that has ended or was stopped.
type Ran struct {
	agentproc.Outcome
	Argv []string
	Env  map[string]string // variables set by the role
	Dir  runfiles.Dir      // run directory, which contains the output
	// Artifacts is the directory of [protocol.EnvArtifacts]. A detail contains the variable instead, because
	// the directory differs for a fork and on other machines.
	Artifacts string
}

// artifactsTag replaces the directory in a detail.
const artifactsTag = "{{" + protocol.ArtifactsVariable + "}}"

// NotRun returns the error for a command that was not run to its end, or nil. stopped means that a user
// stopped it.
func (r Ran) NotRun(stopped bool) error {
	if !stopped && r.Signal == "" && r.ExitCode != NotExecutable && r.ExitCode != NotFound {
		return nil
	}
	said := agentproc.Tail(r.Dir.File(runfiles.StderrFile))
	if said == "" {
		said = agentproc.Tail(r.Dir.File(runfiles.OutputFile))
	}
	return &NoAnswerError{Argv: r.Argv, Ran: r.Outcome, Output: said}
}

// Status returns the answer of a command without data: its exit status and the end of its output.
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

// Data parses the command's output as its answer, as JSON or as text.
func (r Ran) Data(ctx context.Context, json bool, role extract.Role) (output extract.Output, err error) {
	data, err := safeopen.ReadFile(r.Dir.File(runfiles.OutputFile), dataKept, safeopen.NoFollow)
	var big *safeopen.TooBigError
	if errors.As(err, &big) {
		return output, &NoAnswerError{Argv: r.Argv, Ran: r.Outcome,
			Reason: fmt.Sprintf("it printed more than %d bytes of data", dataKept)}
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
		err = &NoAnswerError{Argv: r.Argv, Ran: r.Outcome,
			Reason: "its output is invalid: " + invalid.Error(), Output: r.Stderr}
	}
	return output, err
}

// Print replaces the command's output by its data.
func (r Ran) Print(data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return durable.WriteFile(durable.OS(), r.Dir.File(runfiles.OutputFile), append(text, '\n'), 0o600)
}

// Detail returns the detail of the step: the command, all its output, and its exit status.
func (r Ran) Detail(ctx context.Context, b *cas.Batch, atMs int64) (protocol.Detail, error) {
	w := turns{batch: b, atMs: atMs}
	argv := make([]any, len(r.Argv))
	stored := func(word string) string {
		if r.Artifacts != "" {
			word = strings.ReplaceAll(word, r.Artifacts, artifactsTag)
		}
		return strings.ToValidUTF8(word, "\uFFFD")
	}
	for i, word := range r.Argv {
		argv[i] = stored(word)
	}
	args := map[string]any{"argv": argv}
	if len(r.Env) > 0 {
		env := map[string]any{}
		for name, value := range r.Env {
			env[name] = stored(value)
		}
		args["env"] = env
	}
	w.add(ctx, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: callID, Name: "run",
		Args: args}}})
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

// Command returns the command line and the role's variables from a detail, or nil if it has none.
func Command(ctx context.Context, nodes cas.Reader, detail protocol.Hash, artifacts string) (argv []string,
	env map[string]string, err error) {
	d, err := cas.Read[protocol.Detail](ctx, nodes, detail)
	if err != nil || len(d.Turns) == 0 {
		return nil, nil, err
	}
	turn, err := cas.Read[protocol.Turn](ctx, nodes, d.Turns[0])
	if err != nil || len(turn.ToolCalls) != 1 {
		return nil, nil, err
	}
	args, _ := turn.ToolCalls[0].Args.(map[string]any)
	words, _ := args["argv"].([]any)
	argv = make([]string, len(words))
	here := func(word any) string {
		text, _ := word.(string)
		return strings.ReplaceAll(text, artifactsTag, artifacts)
	}
	for i, word := range words {
		argv[i] = here(word)
	}
	variables, _ := args["env"].(map[string]any)
	for name, value := range variables {
		if env == nil {
			env = map[string]string{}
		}
		env[name] = here(value)
	}
	return argv, env, nil
}

// Turn returns the output of a running command as a turn for display.
func Turn(text string) protocol.Turn {
	return protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID, Content: text}
}

// Hide removes secrets from all output in a command's run directory, before anything else reads it. It
// deletes files that cannot be searched.
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

// hideIn rewrites a file with the secrets of a set removed.
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
			_ = disk.Remove(temp) // the first error is more useful
		}
	}()
	to, err := safeopen.OpenFile(temp, os.O_WRONLY|os.O_APPEND, 0, safeopen.NoFollow)
	if err != nil {
		return err
	}
	hiding := set.NewWriter(to)
	buffer := make([]byte, max(1, min(OutputPiece, size)))
	_, err = io.CopyBuffer(struct{ io.Writer }{hiding}, io.NewSectionReader(from, 0, size), buffer)
	if err = errors.Join(err, hiding.Flush(), to.Close()); err != nil {
		return err
	}
	return disk.Rename(temp, path)
}

// Limits on a command's output, in bytes.
const (
	OutputPiece = 1 << 20   // per turn
	outputKept  = 128 << 20 // of longer output, the start and the end are kept
	dataKept    = 8 << 20   // of output that is the role's data
)

// Exit statuses of a shell for a command that it could not start. Other programs that start programs use them
// as well.
const (
	NotExecutable = 126
	NotFound      = 127
)

// callID is the ID of the only call in the detail of a command's step.
const callID = "1"

// turns collects turns and stores them in groups.
type turns struct {
	batch *cas.Batch
	turns []protocol.Hash
	atMs  int64
	since int
	err   error
}

// add adds a turn.
func (w *turns) add(ctx context.Context, t protocol.Turn) {
	if w.err != nil {
		return
	}
	t.Index, t.AtMs = len(w.turns), w.atMs
	var h protocol.Hash
	if h, w.err = step.AddTurn(ctx, w.batch, t); w.err != nil {
		return
	}
	w.turns = append(w.turns, h)
	if w.since += len(t.Content); w.since >= 4*OutputPiece {
		w.since, w.err = 0, w.batch.Put(ctx)
	}
}

// addFile adds an output file in pieces. If it is longer than kept, it adds only the start and the end.
func (w *turns) addFile(ctx context.Context, path string, kept int64) {
	f, size, err := printed(path)
	if f == nil || err != nil || w.err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	defer f.Close()
	if size <= kept {
		w.addPart(ctx, f, 0, size)
		return
	}
	w.addPart(ctx, f, 0, kept/2)
	w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID,
		Content: fmt.Sprintf("\n[%d bytes are left out]\n", size-kept)})
	w.addPart(ctx, f, size-kept/2, size)
}

// addPart adds a range of a file. It never splits a character between turns.
func (w *turns) addPart(ctx context.Context, f io.ReaderAt, from, to int64) {
	buf := make([]byte, min(OutputPiece, to-from))
	for from < to && w.err == nil {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), to-from)], from)
		if n == 0 {
			w.err = err
			return
		}
		if from+int64(n) < to {
			n = WholeRunes(buf[:n])
		}
		w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID, Content: string(buf[:n])})
		from += int64(n)
	}
}

// WholeRunes returns the length of b without an incomplete character at its end.
func WholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(b); back++ {
		at := len(b) - back
		if utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// printed opens an output file. It returns nil if the file doesn't exist.
func printed(path string) (*os.File, int64, error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// tail returns the end of a file, and reports whether there is more before it.
func tail(path string, most int64) (string, bool, error) {
	f, size, err := printed(path)
	if f == nil || err != nil {
		return "", false, err
	}
	defer f.Close()
	buf := make([]byte, min(most, size))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil && !errors.Is(err, io.EOF) {
		return "", false, err
	}
	if size > most {
		for range utf8.UTFMax {
			if len(buf) > 0 && !utf8.RuneStart(buf[0]) {
				buf = buf[1:]
			}
		}
	}
	return strings.ToValidUTF8(string(buf), "\uFFFD"), size > most, nil
}

// OfAgent reports whether a variable is only meant for agents, which make the step themselves.
func OfAgent(key string) bool {
	switch key {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvPrompt, protocol.EnvLimitBase, protocol.EnvAgent,
		protocol.EnvSnapshot, protocol.EnvRetries:
		return true
	}
	return false
}

// Explain adds the reason for a command role's failure, with facts.
func Explain(err error, role string, facts ...string) error {
	var missing *agentproc.NotFoundError
	var gave *NoAnswerError
	var flood *agentproc.FloodError
	switch {
	case errors.As(err, &flood):
		return fault.New(protocol.CodeAgent, "role %q: %v", role, flood).Because("printed-too-much", facts...)
	case errors.As(err, &missing):
		return CannotStart(role, missing).Because("step-failed", facts...)
	case errors.As(err, &gave):
		e := &protocol.Error{Code: protocol.CodeAgent, Message: fmt.Sprintf("role %q: %v", role, err), Err: err}
		return e.Because("command-failed", facts...)
	}
	return err
}

// maxEnded is the maximum size in bytes of the file with a command's exit status.
const maxEnded = 1 << 10

// Left returns the outcome of a command that ran in namespaces, even if another process started it. It
// returns false if the command has not ended or its outcome is unknown.
func Left(dir runfiles.Dir) (agentproc.Outcome, bool) {
	text, err := safeopen.ReadFile(dir.File(runfiles.EndedFile), maxEnded, safeopen.NoFollow)
	var r plan.Report
	if err != nil || json.Unmarshal(text, &r) != nil || r.Ended == nil {
		return agentproc.Outcome{}, false
	}
	ended := proc.Waited(*r.Ended)
	return agentproc.Outcome{
		ExitCode: ended.Code, Signal: ended.Signal, Stderr: agentproc.Tail(dir.File(runfiles.StderrFile)), Contained: true,
	}, true
}
