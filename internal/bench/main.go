// Command bench measures what uwf promises about speed. Every figure is a ratio
// between two things that are measured in turn in one run, because absolute
// times mean little on a machine that is shared: make bench prints the table.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"text/tabwriter"
)

func main() {
	bin := flag.String("bin", "bin", "directory with uwf and uwf-mock")
	rounds := flag.Int("n", 40, "counted rounds of each row")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	flag.Parse()
	if err := run(context.Background(), *bin, *rounds, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, rounds int, asJSON bool) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "uwf-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	empty := filepath.Join(dir, "empty")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", empty, "github.com/united-workforce/uwf/internal/bench/empty").CombinedOutput(); err != nil {
		return fmt.Errorf("build the empty program: %w: %s", err, out)
	}
	b := &bench{dir: dir, uwf: filepath.Join(bin, "uwf"), mock: filepath.Join(bin, "uwf-mock"), empty: empty}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	ofStore, err := b.storeRows(ctx)
	if err != nil {
		return err
	}
	var results []result
	for _, r := range append(b.rows(), ofStore...) {
		res, err := r.measure(rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		results = append(results, res)
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(results)
	}
	return table(results)
}

func table(results []result) error {
	fmt.Printf("%s, %s/%s, %d processors\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tagainst\tratio min\tmedian\tp90\tpromise\tms\t")
	for _, r := range results {
		verdict := ""
		if r.Median > r.Promise {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%.2f\t≤ %.2f\t%.2f / %.2f\t%s\n",
			r.Name, r.Against, r.Min, r.Median, r.P90, r.Promise, r.SubjectMs, r.AnchorMs, verdict)
	}
	return w.Flush()
}
