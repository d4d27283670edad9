package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

const task = "Median returns wrong values, see stats_test.go"

// demo is one run of the demo.
type demo struct {
	bin      string // directory of uwf and its agents
	keep     bool   // keep root even after a success
	environ  []string
	out      io.Writer
	progress io.Writer // uwf's stderr: a terminal, if there is one
	now      func() time.Time

	repo    string // of uwf
	root    string // everything that the demo creates
	home    string // UWF_HOME
	project string
	model   model
}

// run runs the demo. If it fails, its directory stays, and the error contains the path.
func (d *demo) run(ctx context.Context) (err error) {
	if d.root, err = os.MkdirTemp("", "uwf-demo-"); err != nil {
		return err
	}
	if err := d.play(ctx); err != nil {
		return fmt.Errorf("%w\nwhat the demo made is in %s", err, d.root)
	}
	if d.keep {
		return nil
	}
	return os.RemoveAll(d.root)
}

// play runs all parts, and fails at the first failed check.
func (d *demo) play(ctx context.Context) (err error) {
	if err := d.build(ctx); err != nil {
		return err
	}
	began := d.now()
	stop, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	d.title("A little Go project with a failing test")
	if err := d.expectTests(ctx, red); err != nil {
		return err
	}
	d.title("uwf runs planner (uwf-react), developer and reviewer (uwf-builtin)")
	fmt.Fprintln(d.out, "Each `1 tool call failed` of this demo is a run of the tests that fails as planned.")
	thread, err := d.runWorkflow(ctx)
	if err != nil {
		return err
	}
	d.title("The test passes")
	if err := d.expectTests(ctx, green); err != nil {
		return err
	}
	d.title("What happened")
	steps, err := d.inspect(ctx, thread)
	if err != nil {
		return err
	}
	if err := d.showDiff(ctx); err != nil {
		return err
	}
	if hasGit() {
		d.title("Back to the rejection, with its files; beside it, the task once more")
		if err := d.goBack(ctx, steps[min(2, len(steps)-1)].Hash); err != nil {
			return err
		}
	}
	d.title("Two sides argue, with uwf-llm: no tools, one question each time")
	if err := d.argue(ctx); err != nil {
		return err
	}
	d.title("Next")
	return d.printNext(thread, steps, d.now().Sub(began))
}

// prepare creates the home and the project, and starts the scripted model unless a real one is configured.
// stop ends it.
func (d *demo) prepare(ctx context.Context) (stop func() error, err error) {
	d.home, d.project = filepath.Join(d.root, "home"), filepath.Join(d.root, "project")
	for _, dir := range []string{d.project, filepath.Join(d.root, "before")} {
		if err := writeProject(dir); err != nil {
			return nil, err
		}
	}
	if hasGit() {
		// A new machine has no identity, and `uwf thread apply` commits.
		for _, args := range [][]string{
			{"init", "-q"}, {"config", "user.name", "demo"}, {"config", "user.email", "demo@example.org"},
			{"add", "."}, {"commit", "-q", "-m", "A little Go project"},
		} {
			if err := d.git(ctx, args...); err != nil {
				return nil, err
			}
		}
	}
	real, found, err := realModel(d.environ)
	if err != nil {
		return nil, err
	}
	stop = func() error { return nil }
	if d.model = real; !found {
		if d.model, stop, err = d.startScript(ctx); err != nil {
			return nil, err
		}
	}
	if err := d.writeConfig(); err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

func (d *demo) title(text string) { fmt.Fprintf(d.out, "\n== %s\n\n", text) }

// printNext prints the commands that a person can run next. The demo's home exists only if it is kept, and
// its model has exited, so none of them starts a step there.
func (d *demo) printNext(thread string, steps []step, took time.Duration) error {
	fmt.Fprintf(d.out, "All of it took %.1f s.", took.Seconds())
	lines := [][2]string{
		{"make demo KEEP=1", "plays it again and keeps its threads to look at"},
		{"export PATH=" + shellQuote(d.bin) + `:"$PATH"`, ""},
		{"uwf setup", "asks who plays your roles"},
		{"uwf help", "lists what you can do"},
	}
	if d.keep {
		uwf := shellQuote(d.program("uwf")) + " --home " + shellQuote(d.home)
		reviewed := steps[min(2, len(steps)-1)].Hash
		lines = [][2]string{
			{uwf + " thread list --all", "every thread of the demo"},
			{uwf + " thread read " + thread, "what each role wrote"},
			{uwf + " thread step-details " + reviewed, "every message and tool call of the first review"},
			{uwf + " workflow show solve-issue", "the workflow as it is stored"},
			{"git -C " + shellQuote(d.project) + " log --stat", "the repaired project"},
			{"rm -rf " + shellQuote(d.root), "removes all of it"},
		}
		fmt.Fprintf(d.out, " It is kept in %s.", d.root)
	}
	fmt.Fprint(d.out, " Type next:\n\n")
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	for _, line := range lines {
		if line[1] == "" {
			fmt.Fprintf(table, "  %s\n", line[0])
			continue
		}
		fmt.Fprintf(table, "  %s\t# %s\n", line[0], line[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if d.model.scripted {
		fmt.Fprintln(d.out, "\nThe model was a script. With a real one:")
		fmt.Fprintln(d.out, "  UWF_DEMO_BASE_URL=<…/v1> UWF_DEMO_MODEL=<name> UWF_DEMO_API_KEY=<key> make demo")
	}
	return nil
}

// shellQuote quotes a word for a shell.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
