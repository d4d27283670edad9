package main

import (
	"fmt"
	"io"

	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/convert"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/source"
)

// text prints a report for people.
func text(r convert.Report) func(io.Writer) error {
	return func(w io.Writer) error {
		p := &printer{w: w}
		verb := "brought"
		if r.DryRun {
			verb = "to bring"
		}
		p.line("from %s and %s\nto   %s", r.Ocas, r.Uwf, r.Home)
		for _, row := range []struct {
			what  string
			count convert.Count
		}{{"workflows", r.Workflows}, {"threads", r.Threads}, {"config", r.Config}, {"nodes", r.Nodes}} {
			p.line("%-10s %d %s, %d already there, %d failed", row.what, row.count.Imported, verb, row.count.Present, row.count.Failed)
		}
		p.list("failed or incomplete:", r.Problems)
		p.list("different here:", r.Notes)
		if !r.DryRun && r.Complete() {
			p.line("complete; next: uwf --home %s thread list --all", r.Home)
		}
		return p.err
	}
}

// printer keeps the first write error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) list(title string, items []source.Problem) {
	if len(items) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, i := range items {
		p.line("  %s %s: %s", i.What, i.Name, i.Reason)
	}
}
