package agentproc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Told is what a run has announced so far.
type Told struct {
	Turns   []protocol.Hash // in order
	Writing protocol.Hash   // the turn after them, as far as it is written; "" if that is unknown
}

// Announced returns what the run in a run directory has announced so far. A run
// that has not begun has announced nothing. It looks no further than at the first
// 64 MB of the output.
func Announced(ctx context.Context, runDir string) (Told, error) {
	var told Told
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return told, nil
	}
	if err != nil {
		return told, err
	}
	defer f.Close()
	lines := announcements{told: told.add}
	if _, err := copySome(ctx, &lines, f, maxTold); err != nil {
		return Told{}, fmt.Errorf("read announced turns: %w", err)
	}
	return told, nil
}

// HalfWritten returns the turns of a run as they stood while they were written,
// each once.
func HalfWritten(ctx context.Context, runDir string) ([]protocol.Hash, error) {
	f, err := openOutput(runDir, runfiles.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var half []protocol.Hash
	seen := map[protocol.Hash]bool{}
	lines := announcements{told: func(line protocol.TurnLine) {
		if line == protocol.NewWritingLine(line.Hash) && !seen[line.Hash] && len(half) < maxTurns {
			seen[line.Hash] = true
			half = append(half, line.Hash)
		}
	}}
	if _, err := copySome(ctx, &lines, f, maxTold); err != nil {
		return nil, fmt.Errorf("read announced turns: %w", err)
	}
	return half, nil
}

func (t *Told) add(line protocol.TurnLine) {
	switch {
	case line == protocol.NewWritingLine(line.Hash):
		t.Writing = line.Hash
		return
	case len(t.Turns) == maxTurns:
		return
	}
	t.Turns, t.Writing = append(t.Turns, line.Hash), ""
}
