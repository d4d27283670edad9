package agentproc

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/careful"
)

// What an agent leaves in its run directory is a stranger's: it need not be a
// file, and a file may have any size and cost nothing. So it is opened carefully,
// read in pieces, and only as far as these bounds.
const (
	piece       = 1 << 20  // that is read between two looks whether to stop
	maxTold     = 64 << 20 // of the output, in which turns are looked for
	maxToldLate = 4 << 20  // of the output that a live view has not seen when the agent ends
	maxTurns    = 100_000  // that a run can announce
)

// openOutput opens one of the agent's streams in a run directory.
func openOutput(runDir, name string) (*os.File, error) {
	return careful.Open(filepath.Join(runDir, name), careful.NoFollow)
}

// copySome copies at most n bytes of what is left of a file, and returns how many
// there were. It stops when ctx ends, with its cause.
func copySome(ctx context.Context, to io.Writer, f io.Reader, n int64) (int64, error) {
	var done int64
	for done < n {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		got, err := io.CopyN(to, f, min(piece, n-done))
		done += got
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
