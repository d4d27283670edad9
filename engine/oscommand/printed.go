// Package oscommand has what is of a command that plays a role: what it printed, as turns of a
// piece each, so that it never is in memory as a whole, and why it gave no answer.
package oscommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/careful"
)

// Bounds of what a command prints, in bytes.
const (
	OutputPiece = 1 << 20   // of a turn
	outputKept  = 128 << 20 // of more, the beginning and the end
	dataKept    = 8 << 20   // that is the role's data
)

// What a shell says of a command that it could not start, and what stands for that in
// every program that starts others.
const (
	NotExecutable = 126
	NotFound      = 127
)

// callID is the id of the one call in the detail of a command's step.
const callID = "1"

// turns adds turns, and puts them into the store as soon as they are many.
type turns struct {
	batch *cas.Batch
	turns []protocol.Hash
	atMs  int64
	since int
	err   error
}

// add adds a turn.
func (w *turns) add(ctx context.Context, t protocol.Turn) {
	if w.err != nil {
		return
	}
	t.Index, t.AtMs = len(w.turns), w.atMs
	var h protocol.Hash
	if h, w.err = step.AddTurn(ctx, w.batch, t); w.err != nil {
		return
	}
	w.turns = append(w.turns, h)
	if w.since += len(t.Content); w.since >= 4*OutputPiece {
		w.since, w.err = 0, w.batch.Put(ctx)
	}
}

// addFile adds what a command has printed to a file, in pieces: of more bytes than kept, the beginning and the end.
func (w *turns) addFile(ctx context.Context, path string, kept int64) {
	f, size, err := printed(path)
	if f == nil || err != nil || w.err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	defer f.Close()
	if size <= kept {
		w.addPart(ctx, f, 0, size)
		return
	}
	w.addPart(ctx, f, 0, kept/2)
	w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID, Content: fmt.Sprintf("\n[%d bytes are left out]\n", size-kept)})
	w.addPart(ctx, f, size-kept/2, size)
}

// addPart adds bytes of a file. No turn ends within a character.
func (w *turns) addPart(ctx context.Context, f io.ReaderAt, from, to int64) {
	buf := make([]byte, OutputPiece)
	for from < to && w.err == nil {
		n, err := f.ReadAt(buf[:min(OutputPiece, to-from)], from)
		if n == 0 {
			w.err = err
			return
		}
		if from+int64(n) < to {
			n = WholeRunes(buf[:n])
		}
		w.add(ctx, protocol.Turn{Role: protocol.TurnTool, ToolCallID: callID, Content: string(buf[:n])})
		from += int64(n)
	}
}

// WholeRunes is the length of a text without a character that is cut off at its end.
func WholeRunes(b []byte) int {
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

// tail is the end of a file, and whether there is more.
func tail(path string, most int64) (string, bool, error) {
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
