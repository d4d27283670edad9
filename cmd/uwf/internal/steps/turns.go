package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/transcript"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

// Turns is uwf step turns.
func (a Commands) Turns() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "turns", ArgsUsage: "<thread>", Usage: "print all turns of all steps of a thread as Markdown, oldest first",
		Description: "Turns are numbered through the whole thread; --role, --offset and --limit choose among them, in\n" +
			"this order. With --format json each turn is a line: {\"step\",\"number\",\"role\",\"running\",\"turn\"}.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "role", Usage: "only steps of this `ROLE`"},
			&ucli.StringFlag{Name: "limit", Usage: "at most `N` turns"},
			&ucli.StringFlag{Name: "offset", Usage: "skip the first `N` turns", Value: "0"},
			&ucli.BoolFlag{Name: "live", Usage: "keep printing each turn as it happens, until the running step has ended"},
		},
	}, a.stepTurns)
}

// turnLine is a turn as a line of JSON.
type turnLine struct {
	Step    *protocol.Hash `json:"step"`   // null while it runs
	Number  int            `json:"number"` // of the step, from 1
	Role    string         `json:"role"`   // of the step
	Running bool           `json:"running"`
	Index   int            `json:"index"` // of the turn in the thread, from 1
	Turn    protocol.Turn  `json:"turn"`
}

// turnPrinter prints the turns of a thread one after another.
type turnPrinter struct {
	w             io.Writer
	json          bool
	role          string // "": all
	offset, limit int    // limit < 0: none
	seen          int    // turns of the role so far
}

func (a Commands) stepTurns(ctx context.Context, c *ucli.Context) error {
	p := turnPrinter{w: a.Env.Stdout, role: c.String("role"), limit: -1, json: a.Flags.Format == string(render.JSON)}
	var err error
	if p.offset, p.limit, err = page(c); err != nil {
		return err
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	flight, err := e.Flight(ctx, id)
	if err != nil {
		return err
	}
	r, err := a.Reader(ctx, e, id, flight)
	if err != nil {
		return err
	}
	if _, known := r.Workflow.Roles[p.role]; p.role != "" && !known {
		return noSuchRole(r.Workflow, p.role)
	}
	if err := p.steps(ctx, r); err != nil || flight == nil || !p.wants(flight.Role) {
		return err
	}
	return p.flight(ctx, e, r, flight, c.Bool("live"))
}

func noSuchRole(wf protocol.Workflow, role string) error {
	roles := slices.Sorted(maps.Keys(wf.Roles))
	hints := []string{"one of " + strings.Join(roles, ", ")}
	if near := suggest.Nearest(role, roles, 1); len(near) > 0 {
		hints = append([]string{"did you mean --role " + plaintext.Word(near[0]) + "?"}, hints...)
	}
	return cmdline.NotFound(fmt.Sprintf("workflow %s has no role %q", wf.Name, role), hints...)
}

// page reads --offset and --limit.
func page(c *ucli.Context) (offset, limit int, err error) {
	limit = -1
	if c.IsSet("limit") {
		if limit, err = term.NumberFlag(c, "limit", 0, 20); err != nil {
			return 0, 0, err
		}
	}
	offset, err = term.NumberFlag(c, "offset", 0, 20)
	return offset, limit, err
}

func (p *turnPrinter) wants(role string) bool { return p.role == "" || p.role == role }

// steps prints the finished steps.
func (p *turnPrinter) steps(ctx context.Context, r transcript.Reader) error {
	if err := p.text("# Thread `%s`\n", r.ID); err != nil {
		return err
	}
	for s, err := range view.Turns(ctx, r.Store, r.Thread, p.role) {
		if err != nil {
			return err
		}
		told := render.Count(len(s.Turns), "turn")
		if s.Gone != "" {
			told = s.Gone
		}
		if err := p.text("\n## %s ✓ (%s)\n", plaintext.Line(s.Role), told); err != nil {
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

// flight prints the step in flight; live: until it has ended.
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

// turn prints a turn, if it is on the page.
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
	if block == "" { // it counts, though it says nothing
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
