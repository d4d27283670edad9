package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// step is an entry of `uwf thread steps`.
type step struct {
	Hash   string `json:"hash"`
	Role   string `json:"role"` // "" for the start
	Agent  string `json:"agent"`
	Output struct {
		Status string `json:"$status"`
	} `json:"output"`
}

// inspect shows and checks a thread, and returns its steps.
func (d *demo) inspect(ctx context.Context, thread string) ([]step, error) {
	for _, args := range [][]string{
		{"thread", "show", thread, "--format", "text"},
		{"thread", "steps", thread, "--format", "text"},
		{"thread", "read", thread},
	} {
		if err := d.show(ctx, args...); err != nil {
			return nil, err
		}
	}
	var history struct {
		Steps []step `json:"steps"`
	}
	if err := d.ask(ctx, &history, "thread", "steps", thread); err != nil {
		return nil, err
	}
	steps := slices.DeleteFunc(history.Steps, func(s step) bool { return s.Role == "" })
	if err := checkSteps(steps, d.model.scripted); err != nil {
		return nil, err
	}
	return steps, errors.Join(checkAgents(steps), d.checkModels(ctx, steps))
}

// checkAgents checks that each role was played by its agent.
func checkAgents(steps []step) error {
	for _, s := range steps {
		want := "uwf-builtin"
		if s.Role == "planner" {
			want = "uwf-react"
		}
		if s.Agent != want {
			return fmt.Errorf("promised: %s is played by %s; it was played by %q", s.Role, want, s.Agent)
		}
	}
	return nil
}

// checkSteps checks the path through the workflow. A real model can find another one, but it ends with an
// approval.
func checkSteps(steps []step, scripted bool) error {
	var way []string
	for _, s := range steps {
		way = append(way, s.Role+" "+s.Output.Status)
	}
	want := []string{"planner ready", "developer done", "reviewer rejected", "developer done", "reviewer approved"}
	if scripted && !slices.Equal(way, want) {
		return fmt.Errorf("promised: the steps are %q; they are %q", want, way)
	}
	if len(way) == 0 || way[len(way)-1] != "reviewer approved" {
		return fmt.Errorf("promised: the last step is an approval; the steps are %q", way)
	}
	return nil
}

// checkModels checks that the override of the reviewer's model had an effect.
func (d *demo) checkModels(ctx context.Context, steps []step) error {
	for _, s := range steps {
		var detail struct {
			Model string           `json:"model"`
			Turns []map[string]any `json:"turns"`
		}
		if err := d.ask(ctx, &detail, "thread", "step-details", s.Hash); err != nil {
			return err
		}
		if len(detail.Turns) == 0 {
			return errors.New("promised: the detail of a step holds its turns; it holds none")
		}
		want := d.model.worker
		if s.Role == "reviewer" {
			want = d.model.reviewer
		}
		if d.model.scripted && detail.Model != want {
			return fmt.Errorf("promised: %s is played by %s; it was played by %q", s.Role, want, detail.Model)
		}
	}
	return nil
}
