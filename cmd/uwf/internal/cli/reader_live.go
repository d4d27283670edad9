package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// flightBlock is the step in flight, or the one that was tried in vain: the newest
// turns that fit into two thirds of the quota, and what is being written. What is
// newest is cut if it must be.
func (r reader) flightBlock(ctx context.Context, f engine.Flight, now time.Time) (string, error) {
	head := flightHead(f, now)
	room := r.quota*2/3 - length(head)
	blocks, err := r.flightTurns(ctx, f, room)
	if err != nil || len(blocks) == 0 {
		return head, err
	}
	return head + "\n\n<turns>" + joinReversed(blocks) + "\n</turns>", nil
}

func flightHead(f engine.Flight, now time.Time) string {
	state, so := "running", "**So far:** "+render.Duration(now.Sub(f.Started).Milliseconds())
	if f.Failed != "" {
		state, so = "failed", "**Because:** "+firstLine(f.Failed, 300)
	}
	return fmt.Sprintf("## Step %d: %s (%s)\n**Agent:** %s | **Started:** %s UTC | %s",
		f.Number, plaintext.Line(f.Role), state, plaintext.Line(f.Agent), f.Started.UTC().Format(time.DateTime), so)
}

// leftOut stands for the middle of a text.
func leftOut(n int) string { return fmt.Sprintf("\n\n*(%d characters left out)*\n\n", n) }

// flightTurns are the blocks of the newest turns that fit, newest first.
func (r reader) flightTurns(ctx context.Context, f engine.Flight, room int) ([]string, error) {
	room -= length("\n\n<turns>\n</turns>") + length(omittedTurns)
	var blocks []string
	take := func(t protocol.Turn) bool {
		block := turnBlock(t)
		if block == "" {
			return true
		}
		if length(block) > room {
			if len(blocks) == 0 {
				blocks = append(blocks, cutMiddle(block, room, leftOut))
			}
			blocks = append(blocks, omittedTurns)
			return false
		}
		room -= length(block)
		blocks = append(blocks, block)
		return true
	}
	if f.Printed != "" {
		take(engine.PrintedTurn(f.Printed))
	}
	if f.Writing != "" {
		t, err := cas.Read[protocol.Turn](ctx, r.store, f.Writing)
		if err != nil && !errors.Is(err, cas.ErrNotFound) { // it may have been replaced by the whole turn
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
		t, err := thread.ShownTurn(ctx, r.store, f.Turns[i])
		if err != nil {
			return nil, err
		}
		if !take(t) {
			break
		}
	}
	return blocks, nil
}
