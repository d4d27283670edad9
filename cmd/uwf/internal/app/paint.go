package app

import (
	"io"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/terminal"
)

// Colour is a colour on a stream that may have them, else none.
func (a *App) Colour(w io.Writer, in terminal.Sequence) terminal.Sequence {
	if cmdline.Colours(a.Env, w) {
		return in
	}
	return terminal.Plain
}

// InColours writes a text whose lines have colours, where the stream may have them.
func (a *App) InColours(w io.Writer, text string, of func(line string) terminal.Sequence) error {
	if !cmdline.Colours(a.Env, w) {
		_, err := io.WriteString(w, text)
		return err
	}
	var frame terminal.Painter
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		term.Painted(&frame, of(line), line)
		if end {
			frame.Text("\n")
		}
	}
	return frame.Draw(w)
}
