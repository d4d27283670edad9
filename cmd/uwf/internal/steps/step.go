// Package steps implements uwf step: commands that inspect a step, and that make one in any language.
package steps

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Details returns the command step-details of the seeds, which prints the whole detail as YAML.
func (a Commands) Details() *ucli.Command {
	return a.onStep(ucli.Command{
		Name: "step-details", ArgsUsage: "<step>", Usage: "print everything that happened inside a step, as YAML",
	}, func(ctx context.Context, _ *ucli.Context, s cas.Store, at thread.Step) error {
		detail, err := graph.Expand(ctx, s, at.Detail)
		if err != nil {
			return err
		}
		own := render.YAML
		return render.Print(a.Env.Stdout, a.Format(&own), detail, nil)
	})
}

// onStep returns a command about the step in its first argument.
func (a Commands) onStep(
	cmd ucli.Command, run func(ctx context.Context, c *ucli.Context, s cas.Store, at thread.Step) error,
) *ucli.Command {
	return a.Leaf(cmd, func(ctx context.Context, c *ucli.Context) error {
		h, err := a.Address(ctx, c.Args().First())
		if err != nil {
			return err
		}
		s, err := a.Store(ctx)
		if err != nil {
			return err
		}
		step, err := cas.Read[protocol.Step](ctx, s, h)
		if errors.As(err, new(*cas.TypeError)) { // a step of the original: its position follows from the chain
			var t *thread.Thread
			t, err = thread.Open(ctx, s, h)
			if errors.As(err, new(*cas.TypeError)) || err == nil && t.Last == nil {
				return cmdline.Invalid(fmt.Sprintf("node %s is not a step", h), "uwf thread steps <thread>")
			}
			if err == nil {
				step = t.Last.Step
			}
		}
		if err != nil {
			return err
		}
		return run(ctx, c, s, thread.Step{Hash: h, Step: step})
	})
}

// Show returns the command step show, the original's later name, which prints the step and its detail.
func (a Commands) Show() *ucli.Command {
	return a.onStep(ucli.Command{
		Name: "show", ArgsUsage: "<step>", Usage: "show a step: its agent, its output and its turns",
	}, a.stepShow)
}

// stepShown is the result of step show.
type stepShown struct {
	Hash          protocol.Hash        `json:"hash"`
	Index         int                  `json:"index"`  // 0-based, as in the node
	Number        int                  `json:"number"` // 1-based, as in <thread>@3
	Role          string               `json:"role"`
	Agent         string               `json:"agent"`
	Status        string               `json:"status"` // the status that routed, or ""
	StartedAtMs   int64                `json:"startedAtMs"`
	CompletedAtMs int64                `json:"completedAtMs"`
	DurationMs    int64                `json:"durationMs"`
	Usage         *protocol.Usage      `json:"usage"` // null if unknown
	SessionID     string               `json:"sessionId"`
	EdgePrompt    string               `json:"edgePrompt"`
	Cwd           string               `json:"cwd"`
	ExtractedBy   protocol.ExtractedBy `json:"extractedBy"`
	Files         *protocol.Files      `json:"files,omitempty"`
	Changes       *protocol.FileTotals `json:"changes,omitempty"`
	Frontmatter   any                  `json:"frontmatter"` // the output
	Turns         any                  `json:"turns"`
	Detail        any                  `json:"detail"` // remaining fields
}

func (a Commands) stepShow(ctx context.Context, c *ucli.Context, s cas.Store, at thread.Step) error {
	h, step := at.Hash, at.Step
	t, err := thread.Open(ctx, s, h)
	if err != nil {
		return err
	}
	out, err := t.Shown(ctx, at)
	if err != nil {
		return err
	}
	if step.SessionID, err = thread.SessionID(ctx, s, step); err != nil {
		return err
	}
	detail, err := graph.Expand(ctx, s, step.Detail)
	if err != nil {
		return err
	}
	shown := stepShown{
		Hash: h, Index: step.Index, Number: step.Index + 1, Role: step.Role, Agent: step.Agent, Status: view.StatusOf(out.Value),
		StartedAtMs: step.StartedAtMs, CompletedAtMs: step.CompletedAtMs, DurationMs: step.CompletedAtMs - step.StartedAtMs,
		Usage: step.Usage, SessionID: step.SessionID, EdgePrompt: step.EdgePrompt, Cwd: step.Cwd,
		ExtractedBy: step.ExtractedBy, Files: step.Files, Frontmatter: out.Value, Detail: detail,
	}
	if step.Files != nil {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		if sum, ok := e.Files().Totals(ctx, h, 1)[h]; ok {
			shown.Changes = &sum
		}
	}
	if m, ok := detail.(map[string]any); ok {
		rest := maps.Clone(m)
		shown.Turns = rest["turns"]
		nameArgs(shown.Turns)
		delete(rest, "turns")
		shown.Detail = rest
	}
	return a.Print(shown, nil)
}

// nameArgs renames the arguments of tool calls to the standard name; the original's Claude Code agent called
// them input.
func nameArgs(turns any) {
	list, _ := turns.([]any)
	for _, turn := range list {
		fields, _ := turn.(map[string]any)
		calls, _ := fields["toolCalls"].([]any)
		for _, c := range calls {
			call, _ := c.(map[string]any)
			input, old := call["input"]
			if _, has := call["args"]; old && !has {
				call["args"] = input
				delete(call, "input")
			}
		}
	}
}

// Read returns the command uwf step read.
func (a Commands) Read() *ucli.Command {
	return a.onStep(ucli.Command{
		Name: "read", ArgsUsage: "<step>", Usage: "read the turns of a step as Markdown",
		Flags: []ucli.Flag{
			app.QuotaFlag(),
			&ucli.BoolFlag{Name: "prompt", Usage: "print the agent's prompt instead of the turns"},
		},
	}, a.stepRead)
}

func (a Commands) stepRead(ctx context.Context, c *ucli.Context, s cas.Store, at thread.Step) error {
	h, step := at.Hash, at.Step
	header := fmt.Sprintf("# Step %s\n\n**Role:** %s\n**Agent:** %s", h, plaintext.Line(step.Role), plaintext.Line(step.Agent))
	text, err := "", error(nil)
	if c.Bool("prompt") {
		text, err = promptOf(ctx, s, step)
	} else {
		text, err = turnsOf(ctx, s, step, term.NumberOf(c, "quota")-term.Length(header)-1, a.Quoting())
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Env.Stdout, header+text+"\n")
	return err
}

// promptOf returns the assembled prompt.
func promptOf(ctx context.Context, s cas.Store, step protocol.Step) (string, error) {
	if step.Prompt == nil {
		return "\n\n## Prompt\n\n_Prompt not recorded._", nil
	}
	text, err := cas.Read[protocol.Text](ctx, s, *step.Prompt)
	if redacted, ok := cas.AsRedacted(err); ok {
		return "\n\n## Prompt\n\n_" + redacted.Mark() + "_", nil
	}
	return "\n\n## Prompt\n\n" + string(text), err
}

// turnsOf renders the newest turns that fit. The newest one is shortened if it does not fit alone.
func turnsOf(ctx context.Context, s cas.Store, step protocol.Step, quota int, quoting transcript.Quoting) (string, error) {
	detail, err := cas.Read[protocol.Detail](ctx, s, step.Detail)
	var other *cas.TypeError
	if errors.As(err, &other) && s.Algorithm() == cas.XXH64 {
		return "\n\n_The detail is one that only its agent knows: uwf step show has it._", nil
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		return "\n\n_" + redacted.Mark() + "_", nil
	}
	if err != nil {
		return "", err
	}
	var blocks []string // newest first
	used := 0
	for i := len(detail.Turns) - 1; i >= 0 && used <= quota; i-- {
		turn, err := thread.ShownTurn(ctx, s, detail.Turns[i])
		if err != nil {
			return "", err
		}
		if turn.Role == thread.Redacted {
			turn.Index = i
		}
		blocks = append(blocks, quoting.TurnBlock(turn))
		used += term.Length(blocks[len(blocks)-1])
	}
	if used <= quota {
		return transcript.JoinReversed(blocks), nil
	}
	note := ""
	if len(detail.Turns) > 1 {
		note = transcript.OmittedTurns
	}
	room := quota - term.Length(note)
	for ; len(blocks) > 1 && used > room; blocks = blocks[:len(blocks)-1] {
		used -= term.Length(blocks[len(blocks)-1])
	}
	if len(blocks) == 1 {
		blocks[0] = transcript.CutMiddle(blocks[0], room, transcript.LeftOut)
	}
	return note + transcript.JoinReversed(blocks), nil
}

// Diff returns the command uwf step diff.
func (a Commands) Diff() *ucli.Command {
	return a.onStep(ucli.Command{
		Name: "diff", ArgsUsage: "<step>", Usage: "show the file changes of a step",
		Flags: []ucli.Flag{StatFlag("print only file names and line counts")},
	}, a.stepDiff)
}

// StatFlag returns --stat, which prints a table instead of a patch.
func StatFlag(usage string) ucli.Flag { return &ucli.BoolFlag{Name: "stat", Usage: usage} }

type stepDiffOutput struct {
	Step   protocol.Hash `json:"step"`
	Before protocol.Tree `json:"before"`
	After  protocol.Tree `json:"after"`
	Files  []FileChange  `json:"files"`
	Left   []string      `json:"left,omitempty"` // paths without snapshots
	Note   string        `json:"note,omitempty"`
}

// FileChange is a changed file.
type FileChange struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // added, changed or removed
	Added   *int   `json:"added"`  // lines; null for a binary file
	Removed *int   `json:"removed"`
}

func (a Commands) stepDiff(ctx context.Context, c *ucli.Context, s cas.Store, at thread.Step) error {
	h := at.Hash
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.BundleFiles(ctx, e); err != nil {
		return err
	}
	kept, err := e.Files().StepFiles(ctx, h)
	if err != nil {
		return a.NotInBundle(err)
	}
	list, err := kept.Changes(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.Messagef("step %s changed no files", h)
		if thread, _, named := strings.Cut(c.Args().First(), names.Newest); named {
			a.Hint("to see which steps did: uwf thread steps %s", cmp.Or(thread, names.Newest))
		}
	}
	out := stepDiffOutput{Step: h, Before: kept.Before, After: kept.After, Files: FileChanges(list), Left: kept.Left, Note: kept.Note}
	return a.PrintFiles(ctx, out, kept, list, c.Bool("stat"))
}

// PrintFiles prints the changes, as a patch unless another format is requested.
func (a Commands) PrintFiles(ctx context.Context, out any, kept worktree.StepFiles, list []snapshot.Change, stat bool) error {
	own := render.Text
	return render.Print(a.Env.Stdout, a.Format(&own), out, a.Page(func(w *term.Page) {
		if stat {
			w.Printf("%s", statText(list))
			return
		}
		var patch bytes.Buffer
		w.Fail(kept.Patch(ctx, &patch))
		w.Printf("%s", patch.Bytes())
	}))
}

// FileChanges converts changes to the form for results.
func FileChanges(list []snapshot.Change) []FileChange {
	changes := make([]FileChange, len(list))
	for i, f := range list {
		changes[i] = FileChange{Path: strings.ToValidUTF8(f.Path, "\uFFFD"), Status: map[byte]string{'A': "added", 'D': "removed"}[f.Status]}
		if changes[i].Status == "" {
			changes[i].Status = "changed"
		}
		if f.Added >= 0 {
			changes[i].Added, changes[i].Removed = &f.Added, &f.Removed
		}
	}
	return changes
}

// statText returns a line per file.
func statText(list []snapshot.Change) string {
	var b strings.Builder
	for _, f := range list {
		lines := "binary"
		if f.Added >= 0 {
			lines = fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		}
		fmt.Fprintf(&b, "%c %-12s %s\n", f.Status, lines, plaintext.Line(f.Path))
	}
	return b.String()
}

// Turns returns the command uwf step turns.
func (a Commands) Turns() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "turns", ArgsUsage: "<thread>", Usage: "print the turns of all steps of a thread as Markdown",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "role", Usage: "`ROLE` only steps of one role"},
			term.Number(ucli.StringFlag{Name: "limit", Usage: "`N` maximum number of turns"}, 0, 20),
			term.Number(ucli.StringFlag{Name: "offset", Usage: "`N` number of turns to skip", Value: "0"}, 0, 20),
			&ucli.BoolFlag{Name: "live", Usage: "follow the running step until it ends"},
		},
	}, a.stepTurns)
}

type turnLine struct {
	Step    *protocol.Hash `json:"step"`   // null while it runs
	Number  int            `json:"number"` // of the step, from 1
	Role    string         `json:"role"`   // of the step
	Running bool           `json:"running"`
	Index   int            `json:"index"` // of the turn in the thread, from 1
	Turn    protocol.Turn  `json:"turn"`
}

type turnPrinter struct {
	w             io.Writer
	json          bool
	role          string // "" for all
	offset, limit int    // limit < 0 means no limit
	seen          int    // turns of the role so far
}

func (a Commands) stepTurns(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	p := turnPrinter{w: a.Env.Stdout, role: c.String("role"), offset: term.NumberOf(c, "offset"), limit: -1, json: a.Flags.Format == string(render.JSON)}
	if c.IsSet("limit") {
		p.limit = term.NumberOf(c, "limit")
	}
	flight, err := e.Reader.Flight(ctx, id)
	if err != nil {
		return err
	}
	r, err := a.Reader(ctx, e, id, flight)
	if err != nil {
		return err
	}
	if _, known := r.Workflow.Roles[p.role]; p.role != "" && !known {
		roles := slices.Sorted(maps.Keys(r.Workflow.Roles))
		return cmdline.NotFound(fmt.Sprintf("workflow %s has no role %q", r.Workflow.Name, p.role), cmdline.Choices("--role ", p.role, roles)...)
	}
	if err := p.steps(ctx, r); err != nil || flight == nil || !p.wants(flight.Role) {
		return err
	}
	return p.flight(ctx, e, r, flight, c.Bool("live"))
}

func (p *turnPrinter) wants(role string) bool { return p.role == "" || p.role == role }

// steps prints the turns of finished steps.
func (p *turnPrinter) steps(ctx context.Context, r transcript.Reader) error {
	if err := p.text("# Thread `%s`\n", r.ID); err != nil {
		return err
	}
	for s, err := range view.Turns(ctx, r.Store, r.Thread, p.role) {
		if err != nil {
			return err
		}
		size := render.Count(len(s.Turns), "turn")
		if s.Gone != "" {
			size = s.Gone
		}
		if err := p.text("\n## %s ✓ (%s)\n", plaintext.Line(s.Role), size); err != nil {
			return err
		}
		for _, h := range s.Turns {
			if err := p.turn(ctx, r, turnLine{Step: &s.Step, Number: s.Number, Role: s.Role}, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// flight prints the step in flight, until it ends if live is set.
func (p *turnPrinter) flight(ctx context.Context, e *engine.Engine, r transcript.Reader, f *status.Flight, live bool) error {
	if err := p.text("\n## %s … (running, %s so far)\n", f.Role, render.Count(len(f.Turns), "turn")); err != nil {
		return err
	}
	if !live {
		for _, h := range f.Turns {
			if err := p.turn(ctx, r, turnLine{Number: f.Number, Role: f.Role, Running: true}, h); err != nil {
				return err
			}
		}
		return nil
	}
	for t, err := range view.Live(ctx, e, r.ID, f) {
		if err != nil {
			return err
		}
		if err := p.turn(ctx, r, turnLine{Step: t.Step, Number: f.Number, Role: f.Role, Running: t.Step == nil}, t.Turn); err != nil {
			return err
		}
	}
	return nil
}

// turn prints a turn if it is on the page.
func (p *turnPrinter) turn(ctx context.Context, r transcript.Reader, line turnLine, h cas.Hash) error {
	p.seen++
	if p.seen <= p.offset || (p.limit >= 0 && p.seen > p.offset+p.limit) {
		return nil
	}
	var err error
	if line.Turn, err = thread.ShownTurn(ctx, r.Store, h); err != nil {
		return err
	}
	line.Index = p.seen
	if p.json {
		return json.NewEncoder(p.w).Encode(line)
	}
	t := line.Turn
	t.Index = p.seen - 1
	block := r.TurnBlock(t)
	if block == "" { // it counts, though it is empty
		block = fmt.Sprintf("\n\n## Turn %d\n\n**Turn role:** %s", p.seen, t.Role)
	}
	return p.text("%s\n", block[1:])
}

func (p *turnPrinter) text(format string, args ...any) error {
	if p.json {
		return nil
	}
	_, err := fmt.Fprintf(p.w, format, args...)
	return err
}
