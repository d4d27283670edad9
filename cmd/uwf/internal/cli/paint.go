package cli

import (
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/terminal"
)

// colour is a colour on a stream that may have them, else none.
func (a *app) colour(w io.Writer, in terminal.Sequence) terminal.Sequence {
	if cmdline.Colours(a.env, w) {
		return in
	}
	return terminal.Plain
}

// paintLine writes a line in a colour.
func paintLine(w io.Writer, in terminal.Sequence, text string) {
	var frame terminal.Painter
	painted(&frame, in, text)
	frame.Text("\n")
	_ = frame.Draw(w) // nobody is there to be told
}

// painted adds a text in a colour.
func painted(frame *terminal.Painter, in terminal.Sequence, text string) {
	if in == terminal.Plain {
		frame.Text(text)
		return
	}
	frame.Control(in)
	frame.Text(text)
	frame.Control(terminal.Normal)
}

// inColours writes a text whose lines have colours, where the stream may have them.
func (a *app) inColours(w io.Writer, text string, of func(line string) terminal.Sequence) error {
	if !cmdline.Colours(a.env, w) {
		_, err := io.WriteString(w, text)
		return err
	}
	var frame terminal.Painter
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		painted(&frame, of(line), line)
		if end {
			frame.Text("\n")
		}
	}
	return frame.Draw(w)
}

// ofDiff is the colour of a line of a comparison.
func ofDiff(line string) terminal.Sequence {
	switch {
	case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
		return terminal.Bold
	case strings.HasPrefix(strings.TrimSpace(line), "+"):
		return terminal.Green
	case strings.HasPrefix(strings.TrimSpace(line), "-"):
		return terminal.Red
	}
	return terminal.Plain
}

// ofGraph is the colour of a line of a graph: where the thread stands, and where it was.
func ofGraph(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, " ◀"):
		return terminal.Bold
	case strings.Contains(line, " ×"):
		return terminal.Green
	}
	return terminal.Faint
}

// ofPicture is the colour of a line of a workflow's picture: where it ends, and where it waits.
func ofPicture(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, protocol.EndNode):
		return terminal.Green
	case strings.Contains(line, protocol.SuspendNode):
		return terminal.Yellow
	}
	return terminal.Plain
}

// ofFinding is the colour of a line of a diagnosis.
func ofFinding(line string) terminal.Sequence {
	severity, _, _ := strings.Cut(line, " ")
	return cellColour(severity)
}
