package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// collected is a home used by many processes while another one collects garbage.
type collected struct {
	*testing.T
	dir string
}

const looping = `
name: looping
description: A role that goes on and on.
roles:
  worker: { description: d, goal: "You work.", capabilities: [], procedure: p, output: o, frontmatter: { type: object, properties: { $status: { enum: [again, done] }, n: { type: integer } }, required: [$status] } }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { again: { role: worker, prompt: "Again." }, done: { role: $END, prompt: "Done." } }
`

const loopingScenario = `
repeat: true
steps:
  - output: "---\n$status: again\nn: 1\n---\nOne.\n"
  - output: "---\n$status: again\nn: 2\n---\nTwo.\n"
  - output: "---\n$status: again\n---\nThree.\n"
`

// uwf runs a real process. An error contains its output.
func (c *collected) uwf(args ...string) (string, error) {
	command := exec.CommandContext(c.Context(), "uwf", append([]string{"--home", filepath.Join(c.dir, "home"), "--quiet"}, args...)...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "UWF_HOME=", "OCAS_HOME="+filepath.Join(c.dir, "store"))
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("uwf %s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return string(out), err
}

// field returns a field of the JSON that a command prints.
func (c *collected) field(name string, args ...string) (string, error) {
	out, err := c.uwf(args...)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(out), &fields); err != nil {
		return "", fmt.Errorf("uwf %s: %w: %s", strings.Join(args, " "), err, out)
	}
	text, _ := fields[name].(string)
	return text, nil
}

// step makes a step and returns the new head.
func (c *collected) step(thread string) (string, error) {
	return c.field("head", "thread", "step", thread, "--agent", "uwf-mock --mock-data scenario.yaml")
}

// live starts a thread, steps it, forks it, and steps the fork.
func (c *collected) live(n, steps int) error {
	thread, err := c.field("thread", "thread", "start", "./looping.yaml", "-p", fmt.Sprintf("task %d", n))
	if err != nil {
		return err
	}
	for range steps {
		head, err := c.step(thread)
		if err != nil {
			return err
		}
		fork, err := c.field("thread", "thread", "fork", head)
		if err != nil {
			return err
		}
		if _, err := c.step(fork); err != nil {
			return err
		}
	}
	return nil
}

// Engines, their agents, forks and a collector without a minimum age run concurrently, and no node that a
// thread needs is lost. The store is outside the home, so the collector must also know whose threads to keep.
func TestCollectingWhileThreadsRun(t *testing.T) {
	t.Parallel()
	c := &collected{T: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "looping.yaml"), []byte(looping), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "scenario.yaml"), []byte(loopingScenario), 0o644))
	_, err := c.uwf("workflow", "put", "looping.yaml")
	require.NoError(t, err)

	const threads, steps = 3, 3
	var wg sync.WaitGroup
	problems := make(chan error, threads)
	for n := range threads {
		wg.Go(func() { problems <- c.live(n, steps) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	collections := 0
	for running := true; running; collections++ {
		_, err := c.uwf("cas", "gc", "--grace", "0s")
		require.NoError(t, err)
		select {
		case <-done:
			running = false
		default:
		}
	}
	for range threads {
		require.NoError(t, <-problems)
	}
	require.Greater(t, collections, 1)
	out, err := c.uwf("cas", "fsck")
	require.NoError(t, err, out)
	require.Contains(t, out, fmt.Sprintf(`"threads":%d,`, threads*(1+steps)))
}
