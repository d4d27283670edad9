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

// Submission is what a role leaves after its step.
type Submission struct {
	Role        string
	Type        cas.Hash // of the role's output: Brief.Role.Frontmatter
	Output      extract.Output
	ExtractedBy protocol.ExtractedBy

	Agent     string // uwf-<name>
	SessionID string
	// Detail says what happened inside. Its Turns are hashes from [AddTurn] on
	// the same batch; if there are none, Answer becomes the only turn.
	Detail protocol.Detail
	Answer string // the whole answer
	Prompt string // what the agent was told; "": not recorded

	EdgePrompt string
	Cwd        string // where the agent is; the step names where it was started, if RunDir says that
	RunDir     string // of the run that the engine started; "": there is none

	StartedAtMs, CompletedAtMs int64
	Usage                      *protocol.Usage
	LimitBase                  *int // nil: as the step before

	// Snapshot is what [protocol.EnvSnapshot] says, for an agent that the engine has
	// started; "": the files are not kept. Environ is for git, and Warn is told why the
	// files could not be kept: that costs the step its files, and nothing else.
	Snapshot string
	// Files are those of the step before, where nobody has worked in them; "": there are
	// none, or a snapshot says what they are.
	Files   protocol.Tree
	Environ []string
	Warn    func(text string)

	Children []protocol.ChildEnded // whose results the step joins

	// Failure: the role could not be played, and Answer says why; nil: it was.
	Failure *protocol.StepFailure
}

// Submit adds the nodes of a step to a batch, commits it, and returns the result
// line, which it also leaves in the run directory. When it fails, nothing durable names the step. Errors: those of
// cas.Batch; *cas.SchemaError if the output does not satisfy the role's schema.
func Submit(ctx context.Context, b *cas.Batch, t *thread.Thread, s Submission) (protocol.Result, error) {
	output, err := addOutput(ctx, b, s)
	if err != nil {
		return protocol.Result{}, fmt.Errorf("output: %w", err)
	}
	detail, err := addDetail(ctx, b, s)
	if err != nil {
		return protocol.Result{}, err
	}
	told, err := addPrompt(ctx, b, s.Prompt)
	if err != nil {
		return protocol.Result{}, err
	}
	// What failed before is part of the step; the engine looks that it is.
	var done []protocol.Try
	if t.Last != nil {
		done = t.Last.Tries
	}
	tries := runfiles.Dir(s.RunDir).Tries(done).InStep()
	root, kept := takeSnapshot(ctx, s)
	step, err := t.Append(ctx, b, thread.Next{
		Tries: tries,
		Role:  s.Role, Agent: s.Agent, EdgePrompt: valid(s.EdgePrompt), Cwd: taskDir(s.RunDir, s.Cwd),
		SessionID: valid(s.SessionID),
		Output:    output, Detail: detail, Prompt: told,
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

// takeSnapshot keeps the files as they are, if it is told to.
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
			s.Warn("the files are not kept with this step: " + err.Error())
		}
		return spec.Root, nil
	}
	return spec.Root, &protocol.Files{Tree: taken.Tree, Before: spec.Before, Left: taken.Left, Note: taken.Note}
}

// AddTurn adds a turn to a batch. What a store cannot hold is replaced: a tool's
// output may be anything, and must not cost the step. Of invalid UTF-8 that are the
// bytes themselves; arguments that are too deep become their JSON text, and usage
// that cannot be is unknown.
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

// asText makes arguments their JSON text.
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
	// The schema is as durable as the workflow that names it, and this thread.
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

// maxFile bounds a file of a run directory, in bytes.
const maxFile = 1 << 20

// keepResult writes the result down for [KeptResult]: an agent's stdout is the place
// for it, but everything that the agent starts can write there. It does its best: the
// line on stdout is what counts.
func keepResult(runDir string, r protocol.Result) {
	line, err := json.Marshal(r)
	if err != nil || runDir == "" {
		return
	}
	_ = durable.Replace(durable.OS(), runfiles.Dir(runDir).File(runfiles.ResultFile), append(line, '\n'), 0o600)
}

// KeptResult returns the result of the last step that was submitted in a run.
func KeptResult(runDir string) (r protocol.Result, ok bool) {
	data, err := runfiles.Dir(runDir).Read(runfiles.ResultFile, maxFile)
	return r, err == nil && json.Unmarshal(data, &r) == nil && r.StepHash.Valid()
}

// taskDir is the directory in which the agent of a run was started, which is the one
// that its step names: a script may have gone to another since. It is dir if the
// run's directory, "" if there is none, does not say.
func taskDir(runDir, dir string) string {
	if at := runfiles.Dir(runDir).Record().Cwd; filepath.IsAbs(at) {
		return at
	}
	return dir
}
