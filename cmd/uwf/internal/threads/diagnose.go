package threads

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/runfiles"
)

func (a Commands) threadDiagnoseCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diagnose", ArgsUsage: "<thread>", Usage: "find out what is wrong with a thread, and what to do about it",
		Description: "Checks where the thread stands, the last try of a step, who would play the next role, every node\n" +
			"of the chain, loops and limits. Exit status 7 if a node is damaged; what else it finds is not an error.",
	}, a.threadDiagnose)
}

func (a Commands) threadDiagnose(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	d, err := view.Diagnose(ctx, e, id)
	if err != nil {
		return err
	}
	if d.Status == protocol.StatusCorrupt {
		a.Status = protocol.CodeCorrupt
	}
	return a.Print(d, func(w io.Writer) error { return diagnosisText(w, d, a.Env.Now()) })
}

// diagnosisText prints what was found, the gravest first, then the last try.
func diagnosisText(w io.Writer, d protocol.ThreadDiagnosis, now time.Time) error {
	if err := term.TextLines(w, "thread", d.Thread, "status", string(d.Status), "head", string(d.Head)); err != nil {
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
		heard = app.Started(r.HeardAt, now)
	}
	if err := term.TextLines(w, "last try", fmt.Sprintf("role %s, %s", plaintext.Line(r.Role), r.Status), "agent", plaintext.Line(r.Agent),
		"command", plaintext.Line(strings.Join(r.Command, " ")), "started", app.Started(&r.StartedAt, now), "last output", heard, "files", r.Dir); err != nil {
		return err
	}
	for _, part := range []struct{ name, text string }{{"stderr", r.Stderr}, {runfiles.LogFile, r.WorkerLog}} {
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
