package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// A role that is a command: its words are rendered and started without a shell, and
// the status with which it ends is the role's answer. All that it prints is in the
// step's detail, in turns of a piece each, so that it never is in memory as a whole.

// Bounds of what a command prints, in bytes.
const (
	outputPiece = 1 << 20   // of a turn
	outputKept  = 128 << 20 // of more, the beginning and the end
	dataKept    = 8 << 20   // that is the role's data
)

// What a shell says of a command that it could not start, and what stands for that in
// every program that starts others.
const (
	notExecutable = 126
	notFound      = 127
)

// ofAgent reports whether a variable is only for who makes a step.
func ofAgent(key string) bool {
	switch key {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvPrompt, protocol.EnvLimitBase, protocol.EnvAgent, protocol.EnvSnapshot:
		return true
	}
	return false
}

// commandEnvironment is an agent's environment without secrets: what a command is
// handed may be printed by it, and is stored then. It also has what tells the children
// of this command from others.
func (a *attempt) commandEnvironment(set map[string]string) []string {
	secrets := a.secrets()
	var environ []string
	for _, kv := range config.Handed(a.given(), a.Env, nil) {
		key, value, _ := strings.Cut(kv, "=")
		if !has(set, key) && !ofAgent(key) && !secret.Guarded(key, value) && !secrets.Holds(value) {
			environ = append(environ, kv)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		environ = append(environ, key+"="+set[key])
	}
	return append(proc.OwnPath(environ, a.task.cwd), a.mark())
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
	case a.dir.StopRequested(a.record), ran.Signal != "", ran.ExitCode == notExecutable, ran.ExitCode == notFound:
		return protocol.Result{}, &commandError{argv: a.cmd.argv, ran: ran, said: a.said()}
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
	if a.cmd.plain.Parse == "" {
		text, cut, err := tailOf(a.dir.File(runfiles.OutputFile), moderator.CommandOutput)
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
	data, err := careful.ReadFile(a.dir.File(runfiles.OutputFile), dataKept, careful.NoFollow)
	var big *careful.TooBigError
	if errors.As(err, &big) {
		return extract.Output{}, "", &commandError{argv: a.cmd.argv, ran: ran, why: fmt.Sprintf("it printed more than the %d bytes that its data may have", dataKept)}
	}
	if err != nil {
		return extract.Output{}, "", err
	}
	output, by := extract.Output{}, protocol.ByFrontmatter
	if a.cmd.plain.Parse == protocol.ParseJSON {
		by = protocol.ByValue
		output, err = ofJSON(ctx, data, role)
	} else {
		output, err = extract.Text(ctx, strings.ToValidUTF8(string(data), "\uFFFD"), role)
	}
	var invalid *extract.InvalidError
	if errors.As(err, &invalid) {
		err = &commandError{argv: a.cmd.argv, ran: ran, why: "what it printed is not the role's data: " + invalid.Error(), said: ran.Stderr}
	}
	return output, by, err
}

// ofJSON takes the one JSON value that a command has printed.
func ofJSON(ctx context.Context, data []byte, r extract.Role) (extract.Output, error) {
	data = bytes.TrimSpace(data)
	value, err := exactjson.Parse(data)
	if err != nil {
		return extract.Output{}, &extract.InvalidError{Reason: "it is not one JSON value: " + err.Error()}
	}
	return extract.Value(ctx, value, r)
}

// commandDetail is what was run, all that it printed, and how it ended.
func (a *attempt) commandDetail(ctx context.Context, b *cas.Batch, ran agentproc.Outcome) (protocol.Detail, error) {
	w := turnWriter{batch: b, atMs: a.nowMs()}
	argv := make([]any, len(a.cmd.argv))
	for i, word := range a.cmd.argv {
		argv[i] = strings.ToValidUTF8(word, "\uFFFD")
	}
	w.add(ctx, protocol.Turn{Role: protocol.TurnAssistant, ToolCalls: []protocol.ToolCall{{ID: commandCall, Name: "run", Args: map[string]any{"argv": argv}}}})
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		w.addFile(ctx, a.dir.File(name))
	}
	end, _, err := tailOf(a.dir.File(runfiles.OutputFile), moderator.CommandOutput)
	outcome := fmt.Sprintf("exit status %d", ran.ExitCode)
	if end != "" && !strings.HasSuffix(end, "\n") {
		end += "\n"
	}
	w.add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: end + "[" + outcome + "]"})
	return protocol.Detail{Capture: protocol.CaptureTurns, Turns: w.turns, Outcome: outcome}, errors.Join(w.err, err)
}

// commandCall is the id of the one call in the detail of a command's step.
const commandCall = "1"

// ranBefore are the words of the command that a step of the thread has run: who
// answers its suspension, or pokes it, wants the same once more.
func (e *Engine) ranBefore(ctx context.Context, s thread.Step) ([]string, error) {
	d, err := cas.Read[protocol.Detail](ctx, e.nodes(), s.Detail)
	if err != nil || len(d.Turns) == 0 {
		return nil, err
	}
	turn, err := cas.Read[protocol.Turn](ctx, e.nodes(), d.Turns[0])
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
func (e *Engine) onceMore(ctx context.Context, pos *position, t task) (task, error) {
	if t.command != nil || pos.workflow.Roles[t.role].Player() != protocol.PlayedByCommand || pos.thread.Last == nil {
		return t, nil
	}
	argv, err := e.ranBefore(ctx, *pos.thread.Last)
	if err == nil && len(argv) == 0 {
		err = fault.New(protocol.CodeInvalid, "step %s does not say what command it has run", pos.thread.Last.Hash)
	}
	t.command = argv
	return t, err
}

// turnWriter adds turns, and puts them into the store as soon as they are many.
type turnWriter struct {
	batch *cas.Batch
	turns []protocol.Hash
	atMs  int64
	since int
	err   error
}

func (w *turnWriter) add(ctx context.Context, t protocol.Turn) {
	if w.err != nil {
		return
	}
	t.Index, t.AtMs = len(w.turns), w.atMs
	var h protocol.Hash
	if h, w.err = step.AddTurn(ctx, w.batch, t); w.err != nil {
		return
	}
	w.turns = append(w.turns, h)
	if w.since += len(t.Content); w.since >= 4*outputPiece {
		w.since, w.err = 0, w.batch.Put(ctx)
	}
}

// addFile adds what a command has printed to a file, in pieces.
func (w *turnWriter) addFile(ctx context.Context, path string) {
	f, size, err := printed(path)
	if f == nil || err != nil || w.err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	defer f.Close()
	if size <= outputKept {
		w.addPart(ctx, f, 0, size)
		return
	}
	w.addPart(ctx, f, 0, outputKept/2)
	w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: commandCall, Content: fmt.Sprintf("\n[%d bytes are left out]\n", size-outputKept)})
	w.addPart(ctx, f, size-outputKept/2, size)
}

// addPart adds bytes of a file. No turn ends within a character.
func (w *turnWriter) addPart(ctx context.Context, f io.ReaderAt, from, to int64) {
	buf := make([]byte, outputPiece)
	for from < to && w.err == nil {
		n, err := f.ReadAt(buf[:min(outputPiece, to-from)], from)
		if n == 0 {
			w.err = err
			return
		}
		if from+int64(n) < to {
			n = wholeRunes(buf[:n])
		}
		w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: commandCall, Content: string(buf[:n])})
		from += int64(n)
	}
}

// wholeRunes is the length of a text without a character that is cut off at its end.
func wholeRunes(b []byte) int {
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

// printed opens what a command has printed; nil: there is no such file.
func printed(path string) (*os.File, int64, error) {
	f, err := careful.Open(path, careful.NoFollow)
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

// tailOf is the end of a file, and whether there is more.
func tailOf(path string, most int64) (string, bool, error) {
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

// PrintedTurn is what a command at work has printed, as it is shown.
func PrintedTurn(text string) protocol.Turn {
	return protocol.Turn{Role: protocol.TurnTool, ToolCallID: commandCall, Content: text}
}

// said is the end of what the command has printed, fit to be shown.
func (a *attempt) said() string {
	if text := agentproc.Tail(a.dir.File(runfiles.StderrFile)); text != "" {
		return text
	}
	return agentproc.Tail(a.dir.File(runfiles.OutputFile))
}

// commandError means that a command gave no answer.
type commandError struct {
	argv []string
	ran  agentproc.Outcome
	why  string // "": it could not be run to its end
	said string
}

// Error implements error.
func (e *commandError) Error() string {
	text := fmt.Sprintf("command %s ", plaintext.Word(e.argv[0]))
	switch {
	case e.why != "":
		text += fmt.Sprintf("ended with exit status %d, but %s", e.ran.ExitCode, e.why)
	case e.ran.Signal != "":
		text += "was ended by signal: " + e.ran.Signal
	case e.ran.ExitCode == notFound:
		text += "ended with exit status 127: a command was not found"
	default:
		text += "ended with exit status 126: a command could not be started"
	}
	if e.said != "" {
		text += "\nwhat it printed ends:\n" + e.said
	}
	return text
}

// explainCommand adds to the failure of a command what to do about it.
func (a *attempt) explainCommand(err error) error {
	var missing *agentproc.NotFoundError
	var gave *commandError
	var flood *agentproc.FloodError
	switch {
	case errors.As(err, &flood):
		return fault.Hinted(fault.New(protocol.CodeAgent, "role %q: %v", a.task.role, flood), a.again()+" tries again", "let it write that to a file of its own; what it printed is in "+a.dir.Path)
	case errors.As(err, &missing):
		return fault.Hinted(cannotStart(a.task.role, missing), a.again()+" tries again")
	case errors.As(err, &gave):
		e := &protocol.Error{Code: protocol.CodeAgent, Message: fmt.Sprintf("role %q: %v", a.task.role, err), Err: err}
		return fault.Hinted(e, a.again()+" tries again", "what it printed is in "+a.dir.Path)
	}
	return err
}

// cannotStart says why the program of a role that is a command cannot be started.
func cannotStart(role string, missing *agentproc.NotFoundError) *protocol.Error {
	program := missing.Command
	err := fault.New(protocol.CodeAgent, "role %q: %s", role, strings.Replace(missing.Error(), "agent command", "command", 1))
	err.Err = missing
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return fault.Hinted(err, fmt.Sprintf("run: [%s, …] names a program of the workspace", plaintext.Word("./"+filepath.Base(program))))
	case missing.Absent() && filepath.Base(program) == program:
		return fault.Hinted(err, "install it, or put it on PATH")
	}
	return err
}

// castCommand finds the program of a role that is a command, as far as it is known
// before its words are rendered: one of the workspace may still be made.
func (e *Engine) castCommand(c *Casting) {
	program := c.Command[0]
	if strings.Contains(program, "{{") || filepath.Base(program) != program {
		return
	}
	path, err := proc.LookPath(program, e.Env.Dir, e.Env.Environ)
	if err != nil {
		c.Problem = cannotStart(c.Role, &agentproc.NotFoundError{Command: program, Err: err})
		return
	}
	c.Path = path
}
