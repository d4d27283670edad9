package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

const task = "Median returns wrong values, see stats_test.go"

// demo is one run of the demo.
type demo struct {
	bin      string // of uwf and its agents
	environ  []string
	out      io.Writer
	progress io.Writer // uwf's stderr: a terminal, if there is one
	now      func() time.Time

	repo    string // of uwf
	root    string // everything that the demo makes
	home    string // UWF_HOME
	project string
	model   model
}

// run does everything, and fails at the first promise that does not hold.
func (d *demo) run(ctx context.Context) (err error) {
	if d.root, err = os.MkdirTemp("", "uwf-demo-"); err != nil {
		return err
	}
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
	d.title("Look around")
	return d.sayNext(thread, steps, d.now().Sub(began))
}

// prepare makes the home and the project, and starts the scripted model if no
// real one is named. stop ends it.
func (d *demo) prepare(ctx context.Context) (stop func() error, err error) {
	d.home, d.project = filepath.Join(d.root, "home"), filepath.Join(d.root, "project")
	for _, dir := range []string{d.project, filepath.Join(d.root, "before")} {
		if err := writeProject(dir); err != nil {
			return nil, err
		}
	}
	if hasGit() {
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "A little Go project"}} {
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

// sayNext tells what a person can do now.
func (d *demo) sayNext(thread string, steps []step, took time.Duration) error {
	fmt.Fprintf(d.out, "All of it took %.1f s and is still there. Type next:\n\n", took.Seconds())
	fmt.Fprintf(d.out, "  export UWF_HOME=%s\n", d.home)
	fmt.Fprintf(d.out, "  alias uwf=%s\n\n", d.program("uwf"))
	reviewed := steps[min(2, len(steps)-1)].Hash
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	for _, line := range [][2]string{
		{"uwf thread read " + thread, "what each role said"},
		{"uwf thread read @", "the debate (@ is the newest thread)"},
		{"uwf thread step-details " + reviewed, "every message and tool call of the first review"},
		{"uwf thread fork " + reviewed, "a new thread that begins after that step"},
		{"uwf workflow show solve-issue", "the workflow as it is stored"},
	} {
		fmt.Fprintf(table, "  %s\t# %s\n", line[0], line[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe repaired project: %s\n", d.project)
	if d.model.scripted {
		fmt.Fprintln(d.out, "\nThe model was a script. With a real one:")
		fmt.Fprintln(d.out, "  UWF_DEMO_BASE_URL=<…/v1> UWF_DEMO_MODEL=<name> UWF_DEMO_API_KEY=<key> make demo")
	}
	return nil
}
