package step

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Submission is the result of a step.
type Submission struct {
	Role        string
	Type        cas.Hash // of the role's output: Brief.Role.Frontmatter
	Output      extract.Output
	ExtractedBy protocol.ExtractedBy

	Agent     string // uwf-<name>
	SessionID string
	// Detail describes the work inside the step. Its Turns are hashes returned by [AddTurn] for the same
	// batch; without turns, Answer becomes the only one.
	Detail protocol.Detail
	Answer string // the whole answer
	Prompt string // the agent's prompt; "" if not recorded

	EdgePrompt string
	Cwd        string // the agent's current directory; the step records its starting directory if RunDir contains it
	RunDir     string // of the engine's run; "" without one

	StartedAtMs, CompletedAtMs int64
	Usage                      *protocol.Usage
	LimitBase                  int // 0: unchanged

	// Snapshot is the value of [protocol.EnvSnapshot] for an agent started by the engine; "" disables
	// snapshots. Git runs with Environ. If the snapshot fails, Warn gets the reason, and the step is stored
	// without its files.
	Snapshot string
	// Files is the snapshot of the previous step if nobody has changed the files since; "" if there is none,
	// or if Snapshot is set.
	Files   protocol.Tree
	Environ []string
	Warn    func(text string)

	Children []protocol.ChildEnded // whose results the step joins

	// Failure is set if the role could not be played; Answer is then the reason.
	Failure *protocol.StepFailure
}

// Submit adds the nodes of a step to a batch, commits it, and returns the result line, which it also writes
// to the run directory. If it fails, no durable node references the step. Its error comes from cas.Batch, or
// is a *cas.SchemaError if the output doesn't match the role's schema.
func Submit(ctx context.Context, b *cas.Batch, t *thread.Thread, s Submission) (protocol.Result, error) {
	output, err := addOutput(ctx, b, s)
	if err != nil {
		return protocol.Result{}, fmt.Errorf("output: %w", err)
	}
	detail, err := addDetail(ctx, b, s)
	if err != nil {
		return protocol.Result{}, err
	}
	promptHash, err := addPrompt(ctx, b, s.Prompt)
	if err != nil {
		return protocol.Result{}, err
	}
	// The step must contain the failed tries since the previous one; the engine checks that.
	var done []protocol.Try
	if t.Last != nil {
		done = t.Last.Tries
	}
	tries := runfiles.Dir(s.RunDir).Tries(done).InStep()
	root, kept := takeSnapshot(ctx, s)
	step, err := t.Append(ctx, b, protocol.Step{
		Tries: tries,
		Role:  s.Role, Agent: s.Agent, EdgePrompt: valid(s.EdgePrompt), Cwd: taskDir(s.RunDir, s.Cwd),
		SessionID: valid(s.SessionID),
		Output:    output, Detail: detail, Prompt: promptHash,
		StartedAtMs: s.StartedAtMs, CompletedAtMs: s.CompletedAtMs,
		ExtractedBy: s.ExtractedBy, Usage: s.Usage, LimitBase: s.LimitBase, Root: root, Files: kept, Children: s.Children,
		Error: s.Failure,
	})
	if err != nil {
		return protocol.Result{}, fmt.Errorf("step: %w", err)
	}
	if err := b.Commit(ctx); err != nil {
		return protocol.Result{}, fmt.Errorf("commit: %w", err)
	}
	result := protocol.Result{
		StepHash: step, SessionID: valid(s.SessionID), DetailHash: detail, Role: s.Role, Usage: s.Usage, Durable: true,
	}
	keepResult(s.RunDir, result)
	return result, nil
}

// takeSnapshot takes a snapshot of the files, if enabled.
func takeSnapshot(ctx context.Context, s Submission) (root string, kept *protocol.Files) {
	if s.Snapshot == "" && s.Files != "" {
		return "", &protocol.Files{Tree: s.Files}
	}
	spec, ok, err := snapshot.ParseSpec(s.Snapshot)
	if err == nil && !ok {
		return "", nil
	}
	var taken snapshot.Taken
	if err == nil {
		taken, err = snapshot.Take(ctx, env.Env{Environ: s.Environ}, spec)
	}
	if err != nil {
		if s.Warn != nil {
			s.Warn("the files were not stored with this step: " + err.Error())
		}
		return spec.Root, nil
	}
	return spec.Root, &protocol.Files{Tree: taken.Tree, Before: spec.Before, Left: taken.Left, Note: taken.Note}
}

// AddTurn adds a turn to a batch. A tool's output can be anything and must not make the step fail, so values
// that a store can't hold are replaced: invalid UTF-8 by replacement characters, arguments that are too deeply
// nested by their JSON text, and invalid usage by unknown usage.
func AddTurn(ctx context.Context, b *cas.Batch, t protocol.Turn) (cas.Hash, error) {
	t.Content, t.Reasoning, t.ToolCallID = valid(t.Content), valid(t.Reasoning), valid(t.ToolCallID)
	if r := t.Refused; r != nil {
		t.Refused = &protocol.Refused{Why: valid(r.Why), Number: r.Number, Of: r.Of}
	}
	if t.Usage.Plausible() != nil {
		t.Usage = nil
	}
	calls := make([]protocol.ToolCall, len(t.ToolCalls))
	for i, c := range t.ToolCalls {
		if raw, ok := c.Args.(string); ok {
			c.Args = valid(raw)
		}
		calls[i] = protocol.ToolCall{ID: valid(c.ID), Name: valid(c.Name), Args: c.Args}
	}
	if t.ToolCalls != nil {
		t.ToolCalls = calls
	}
	h, err := b.Add(ctx, t)
	if err != nil && ctx.Err() == nil && len(calls) > 0 {
		asText(calls)
		h, err = b.Add(ctx, t)
	}
	if err != nil {
		return "", fmt.Errorf("turn: %w", err)
	}
	return h, nil
}

// asText replaces arguments with their JSON text.
func asText(calls []protocol.ToolCall) {
	for i, c := range calls {
		if _, ok := c.Args.(string); ok || c.Args == nil {
			continue
		}
		if text, err := json.Marshal(c.Args); err == nil {
			calls[i].Args = valid(string(text))
		}
	}
}

func addOutput(ctx context.Context, b *cas.Batch, s Submission) (cas.Hash, error) {
	if s.Failure != nil {
		return b.Add(ctx, protocol.Text(valid(s.Answer)))
	}
	if s.Output.Suspend != nil {
		return b.Add(ctx, protocol.NewSuspend(valid(s.Output.Suspend.Reason)))
	}
	// The schema is as durable as the workflow that references it, and as this thread.
	return b.AddDurable(ctx, s.Type, s.Output.Value)
}

func addDetail(ctx context.Context, b *cas.Batch, s Submission) (cas.Hash, error) {
	d := s.Detail
	if d.SessionID == "" {
		d.SessionID = valid(s.SessionID)
	}
	if d.DurationMs == 0 {
		d.DurationMs = s.CompletedAtMs - s.StartedAtMs
	}
	if len(d.Turns) == 0 {
		turn, err := AddTurn(ctx, b, protocol.Turn{Role: protocol.TurnAssistant, Content: s.Answer, AtMs: s.CompletedAtMs})
		if err != nil {
			return "", err
		}
		d.Turns, d.Capture = []cas.Hash{turn}, protocol.CaptureFinal
	}
	if d.Capture == "" {
		d.Capture = protocol.CaptureTurns
	}
	h, err := b.Add(ctx, d)
	if err != nil {
		return "", fmt.Errorf("detail: %w", err)
	}
	return h, nil
}

func addPrompt(ctx context.Context, b *cas.Batch, text string) (*cas.Hash, error) {
	if text == "" {
		return nil, nil
	}
	h, err := b.Add(ctx, protocol.Text(valid(text)))
	if err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	return &h, nil
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// maxFile bounds a file in a run directory, in bytes.
const maxFile = 1 << 20

// keepResult writes the result for [KeptResult], because any process that the agent starts can write to its
// stdout. It ignores errors: the line on stdout is authoritative.
func keepResult(runDir string, r protocol.Result) {
	line, err := json.Marshal(r)
	if err != nil || runDir == "" {
		return
	}
	// The last line counts: in each run the file is new, and it costs less to append than to replace.
	_ = durable.OS().Append(runfiles.Dir(runDir).File(runfiles.ResultFile), append(line, '\n'), 0o600, durable.NoFlush)
}

// KeptResult returns the result of the last step submitted in a run.
func KeptResult(runDir string) (r protocol.Result, ok bool) {
	data, err := runfiles.Dir(runDir).Read(runfiles.ResultFile, maxFile)
	return r, err == nil && json.Unmarshal(durable.LastLine(data), &r) == nil && r.StepHash.Valid()
}

// taskDir returns the directory in which the agent of a run was started, which the step records: a script
// might have changed its directory since. It returns dir if runDir is "" or doesn't contain it.
func taskDir(runDir, dir string) string {
	if at := runfiles.Dir(runDir).Record().Cwd; filepath.IsAbs(at) {
		return at
	}
	return dir
}
