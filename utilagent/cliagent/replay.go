package cliagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
)

// Seen is what an adapter makes of a run.
type Seen struct {
	Outcome
	Answer  string // which of the texts is the answer
	Turns   []protocol.Turn
	Worked  int // how many messages the model wrote
	Model   string
	Version Version
}

// Replay has an adapter read what a program printed in a call, without a program:
// for tests with recorded runs, and to find out why a run came out as it did.
func Replay(ctx context.Context, a Adapter, c Call, stdout io.Reader, e Exit) (Seen, error) {
	var seen Seen
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limits := a.Timeouts.withDefaults()
	now := &call{
		ask: c, sessions: a.Sessions, isPlain: a.isPlain, count: a.CountsTurns, cancel: cancel, watch: newWatch(limits, cancel),
		began: func(string) error { return nil },
		record: record{put: func(_ context.Context, t protocol.Turn) error {
			t.Index = len(seen.Turns)
			seen.Turns = append(seen.Turns, t)
			return nil
		}},
	}
	h := &Host{limits: limits, outer: ctx}
	h.current(now)
	r := &lineReader{decoder: a.Decoder(c), host: h, noise: &output.Tail{}}
	if d, ok := r.decoder.(ErrLiner); ok {
		for line := range strings.SplitSeq(e.Stderr, "\n") {
			r.take(ctx, func() ([]Event, bool) { return d.ErrLine([]byte(line)), true }, nil)
		}
	}
	lines := bufio.NewReader(stdout)
	r.read(ctx, func() ([]byte, error) {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = nil
		}
		return bytes.TrimRight(line, "\r\n"), err
	})
	e.Noise = r.noise.Text()
	outcome := r.decoder.End(e)
	if err := errors.Join(r.err, now.close(ctx)); err != nil {
		return seen, err
	}
	out := now.judge(outcome, context.Cause(ctx))
	seen.Outcome, seen.Answer, seen.Worked = out.Outcome, out.text, now.record.messages
	seen.Model, seen.Version = out.model, out.version
	return seen, nil
}
