package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// childEnv returns the environment for all processes of the demo, with its home and without a Go workspace.
func (d *demo) childEnv() []string {
	return append(d.environ[:len(d.environ):len(d.environ)], "UWF_HOME="+d.home, "OCAS_HOME=", "GOWORK=off", "GOFLAGS=")
}

// prompt shows a command as if a person had typed it.
func (d *demo) prompt(line string) { fmt.Fprintf(d.out, "$ %s\n", line) }

// uwf runs a uwf command and returns its result; other output goes to the progress stream.
func (d *demo) uwf(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, d.program("uwf"), args...)
	c.Dir, c.Env, c.Stderr = d.repo, d.childEnv(), d.progress
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("uwf %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// ask runs a command and decodes its result.
func (d *demo) ask(ctx context.Context, into any, args ...string) error {
	out, err := d.uwf(ctx, append(args, "--format", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("uwf %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// show runs a command and shows its result.
func (d *demo) show(ctx context.Context, args ...string) error {
	d.prompt("uwf " + strings.Join(args, " "))
	out, err := d.uwf(ctx, args...)
	fmt.Fprintf(d.out, "%s\n", out)
	return err
}

// result is the output of `uwf run`.
type result struct {
	Thread string `json:"thread"`
	Status string `json:"status"`
	Done   bool   `json:"done"`
}

// runWorkflow registers the workflow and runs it to its end.
func (d *demo) runWorkflow(ctx context.Context) (thread string, err error) {
	if err := d.show(ctx, "workflow", "put", "examples/solve-issue.yaml", "--format", "text"); err != nil {
		return "", err
	}
	d.prompt(fmt.Sprintf("uwf run solve-issue -p %q --cwd %s", task, d.project))
	var r result
	if err := d.ask(ctx, &r, "run", "solve-issue", "-p", task, "--cwd", d.project); err != nil {
		return "", err
	}
	if r.Status != "completed" || !r.Done {
		return "", fmt.Errorf("promised: the thread is completed; it is %s", r.Status)
	}
	return r.Thread, nil
}

// argue lets two models discuss. Real ones needn't agree in the end.
func (d *demo) argue(ctx context.Context) error {
	const file, proposition = "examples/debate.yaml", "A function that only computes must not change its argument"
	d.prompt(fmt.Sprintf("uwf run %s -p %q", file, proposition))
	var r result
	err := d.ask(ctx, &r, "run", file, "-p", proposition, "--cwd", d.project)
	switch {
	case err != nil && d.model.scripted:
		return err
	case err != nil:
		fmt.Fprintf(d.out, "%v\n", err)
		return nil
	case r.Status != "completed":
		return fmt.Errorf("promised: the debate comes to an end; it is %s", r.Status)
	}
	return d.show(ctx, "thread", "steps", r.Thread, "--format", "text")
}
