package transcript

import (
	"context"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/oscommand"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// FlightBlock is the step in flight, or the one that was tried in vain: the newest
// turns that fit into two thirds of the quota, and what is being written. What is
// newest is cut if it must be.
func (r Reader) FlightBlock(ctx context.Context, f status.Flight, now time.Time) (string, error) {
	head := flightHead(f, now)
	room := r.Quota*2/3 - term.Length(head)
	blocks, err := r.flightTurns(ctx, f, room)
	if err != nil || len(blocks) == 0 {
		return head, err
	}
	return head + "\n\n<turns>" + JoinReversed(blocks) + "\n</turns>", nil
}

func flightHead(f status.Flight, now time.Time) string {
	state, so := "running", "**So far:** "+render.Duration(now.Sub(f.Started).Milliseconds())
	if f.Failed != "" {
		state, so = "failed", "**Because:** "+term.FirstLine(f.Failed, 300)
	}
	return fmt.Sprintf("## Step %d: %s (%s)\n**Agent:** %s | **Started:** %s UTC | %s",
		f.Number, plaintext.Line(f.Role), state, plaintext.Line(f.Agent), f.Started.UTC().Format(time.DateTime), so)
}

// LeftOut stands for the middle of a text.
func LeftOut(n int) string { return fmt.Sprintf("\n\n*(%d characters left out)*\n\n", n) }

// flightTurns are the blocks of the newest turns that fit, newest first.
func (r Reader) flightTurns(ctx context.Context, f status.Flight, room int) ([]string, error) {
	room -= term.Length("\n\n<turns>\n</turns>") + term.Length(OmittedTurns)
	var blocks []string
	take := func(t protocol.Turn) bool {
		block := r.TurnBlock(t)
		if block == "" {
			return true
		}
		if term.Length(block) > room {
			if len(blocks) == 0 {
				blocks = append(blocks, CutMiddle(block, room, LeftOut))
			}
			blocks = append(blocks, OmittedTurns)
			return false
		}
		room -= term.Length(block)
		blocks = append(blocks, block)
		return true
	}
	if f.Printed != "" {
		take(oscommand.Turn(f.Printed))
	}
	if f.Writing != "" {
		t, err := cas.Read[protocol.Turn](ctx, r.Store, f.Writing)
		if err != nil && !thread.IsNoTurn(err) { // it may have been replaced by the whole turn
			return nil, err
		}
		switch {
		case t.Role == protocol.TurnSystem: // what is waited for
		case f.Failed == "":
			t.Content += "\n\n*(still being written)*"
		default:
			t.Content += "\n\n*(was being written)*"
		}
		if err == nil && !take(t) {
			return blocks, nil
		}
	}
	for i := len(f.Turns) - 1; i >= 0; i-- {
		t, err := thread.ShownTurn(ctx, r.Store, f.Turns[i])
		switch {
		case thread.IsNoTurn(err):
			continue
		case err != nil:
			return nil, err
		}
		if !take(t) {
			break
		}
	}
	return blocks, nil
}
