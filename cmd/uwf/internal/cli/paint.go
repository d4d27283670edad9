package cli

import (
	"io"

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
