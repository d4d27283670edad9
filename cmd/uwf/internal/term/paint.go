package term

import (
	"io"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/terminal"
)

// PaintLine writes a line in a colour.
func PaintLine(w io.Writer, in terminal.Sequence, text string) {
	var frame terminal.Painter
	Painted(&frame, in, text)
	frame.Text("\n")
	_ = frame.Draw(w) // nobody is there to be told
}

// Painted adds a text in a colour.
func Painted(frame *terminal.Painter, in terminal.Sequence, text string) {
	if in == terminal.Plain {
		frame.Text(text)
		return
	}
	frame.Control(in)
	frame.Text(text)
	frame.Control(terminal.Normal)
}

// OfDiff is the colour of a line of a comparison.
func OfDiff(line string) terminal.Sequence {
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

// OfGraph is the colour of a line of a graph: where the thread stands, and where it was.
func OfGraph(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, " ◀"):
		return terminal.Bold
	case strings.Contains(line, " ×"):
		return terminal.Green
	}
	return terminal.Faint
}

// OfPicture is the colour of a line of a workflow's picture: where it ends, and where it waits.
func OfPicture(line string) terminal.Sequence {
	switch {
	case strings.Contains(line, protocol.EndNode):
		return terminal.Green
	case strings.Contains(line, protocol.SuspendNode):
		return terminal.Yellow
	}
	return terminal.Plain
}

// OfFinding is the colour of a line of a diagnosis.
func OfFinding(line string) terminal.Sequence {
	severity, _, _ := strings.Cut(line, " ")
	return cellColour(severity)
}
