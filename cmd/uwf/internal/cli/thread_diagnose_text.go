package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/rundir"
)

func runJSON(r engine.Run) *diagnosedRun {
	out := &diagnosedRun{
		Role: r.Role, Agent: r.Agent, Command: r.Command, Status: r.Status, Alive: r.Alive,
		StartedAt: r.Started.UnixMilli(), Error: r.Error, Stderr: r.Stderr, WorkerLog: r.WorkerLog, Dir: r.Dir,
	}
	if !r.Heard.IsZero() {
		ms := r.Heard.UnixMilli()
		out.HeardAt = &ms
	}
	return out
}

// text prints what was found, the gravest first, then the last try.
func (d diagnosis) text(w io.Writer, now time.Time) error {
	if err := textLines(w, "thread", d.Thread, "status", string(d.Status), "head", string(d.Head)); err != nil {
		return err
	}
	for _, level := range []string{"error", "warning", "note"} {
		for _, f := range d.Findings {
			if f.Level != level {
				continue
			}
			fmt.Fprintf(w, "\n%s: %s\n", level, indented(f.Message))
			for _, hint := range strings.Split(f.Hint, "\n") {
				if hint != "" {
					fmt.Fprintf(w, "  → %s\n", plaintext.Line(hint))
				}
			}
		}
	}
	if len(d.Findings) == 0 {
		fmt.Fprintln(w, "\nnothing is wrong")
	}
	if d.Run == nil {
		return nil
	}
	r := d.Run
	fmt.Fprintln(w)
	heard := ""
	if r.HeardAt != nil {
		heard = started(r.HeardAt, now)
	}
	if err := textLines(w, "last try", fmt.Sprintf("role %s, %s", plaintext.Line(r.Role), r.Status), "agent", plaintext.Line(r.Agent),
		"command", plaintext.Line(strings.Join(r.Command, " ")), "started", started(&r.StartedAt, now), "last output", heard, "files", r.Dir); err != nil {
		return err
	}
	for _, part := range []struct{ name, text string }{{"stderr", r.Stderr}, {rundir.LogFile, r.WorkerLog}} {
		if part.text != "" {
			fmt.Fprintf(w, "%s ends:\n    %s\n", part.name, indented(part.text))
		}
	}
	return nil
}

// indented keeps the lines of a text behind what stands before it.
func indented(s string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(s), "\n") {
		lines = append(lines, plaintext.Line(line))
	}
	return strings.Join(lines, "\n    ")
}

// sinceText is a span of time for people.
func sinceText(from, to time.Time) string { return duration(max(0, to.Sub(from).Milliseconds())) }
