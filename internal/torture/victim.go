package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// victim is a world with untrusted input: a cloned repository, a model, a bundle. Nothing but the repository
// and the home of uwf may change.
type victim struct {
	*world
	outside string            // the user's home, and other places
	fooled  string            // what the fool answers and receives
	before  map[string]string // the state of everything that must not change
	calls   chan []call       // tool calls for the model to make, after which it answers
	stop    func()
}

// pairYAML is honest: the maker's answer is passed to the checker.
const pairYAML = `name: %s
description: Two roles, one after the other.
roles:
  maker: &role
    description: Works.
    goal: %s
    capabilities: []
    procedure: Work.
    output: Something.
    frontmatter:
      type: object
      properties: { $status: { const: done }, note: { type: string } }
      required: [$status, note]
  checker: *role
graph:
  $START: { _: { role: maker, prompt: "{{{$prompt}}}", location: %s } }
  maker: { done: { role: checker, prompt: "Check this: {{{note}}}", location: %s } }
  checker: { done: { role: $END, prompt: "Done." } }
`

// honest is the name of the workflow that must complete. It is long, so that other names of the same length
// can replace it in a bundle.
const honest = "pair-of-roles-that-is-honest"

// pair returns the honest workflow, or one with an attacker's goal and locations.
func pair(name, goal, first, second string) []byte {
	return fmt.Appendf(nil, pairYAML, name, goal, first, second)
}

// victimConfig has two aliases for our agent: one that may only edit, and one with a typical command line.
const victimConfig = `providers: { local: { baseUrl: "%s/v1", apiKey: %s } }
models: { m: { provider: local, name: m } }
defaultModel: m
agents:
  edits: { command: %s/uwf-builtin, permission: edits }
  bare: { command: uwf-builtin }
sandbox: { mode: required }
`

// canary is a text in the user's files.
const canary = "CANARY-of-the-user"

// attacked returns the run function of a row: each round creates a victim, performs the attack, and checks
// that nothing was harmed. The short form has one round.
func attacked(attack func(ctx context.Context, t *trial, v *victim) error) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		for t.rounds == 0 || t.time(ctx) && !t.short() {
			v, err := t.victim(ctx)
			if err != nil {
				return err
			}
			err = attack(ctx, t, v)
			if err == nil {
				err = v.unharmed(ctx)
			}
			v.stop()
			if err != nil {
				return err
			}
			t.rounds++
			if err := removeAll(v.dir); err != nil {
				return err
			}
		}
		return nil
	}
}

func (t *trial) victim(ctx context.Context) (*victim, error) {
	w, err := t.world()
	if err != nil {
		return nil, err
	}
	v := &victim{world: w, outside: w.path("outside"), fooled: w.path("fool"), calls: make(chan []call, 1)}
	url, _, stop, err := serve(ctx, behaviour{answer: func(w http.ResponseWriter, _ string) {
		select {
		case list := <-v.calls:
			use(w, list...)
		default:
			say(w, map[string]any{"role": "assistant", "content": harmless})
		}
	}})
	if err != nil {
		return nil, err
	}
	v.stop = stop
	w.cwd = w.path("work/project")
	w.agent = t.self + " " + foolPart
	w.env = append(slices.Clone(w.env), foolVariable+"="+v.fooled, "HOME="+filepath.Join(v.outside, "user"), "LESSHISTFILE=-", "PATH="+w.bin+string(os.PathListSeparator)+t.env.Get("PATH"), "UWF_BUILTIN_ALLOW_SHELL=1")
	for path, text := range map[string][]byte{
		"fool/x": nil, "work/x": nil, "outside/user/.bashrc": []byte(canary + "\n"), "outside/user/.cache/x": nil, "outside/user/.ssh/id": []byte("text: " + canary + "\n"),
		"outside/other/file": []byte("name: " + canary + "\n"), "outside/other/index.yaml": pair("other", canary, `.`, `.`),
		"home/config.yaml":       fmt.Appendf(nil, victimConfig, url, keys()["config.yaml"], w.bin),
		"work/project/README.md": []byte("# Project\n"), honest + ".yaml": pair(honest, "You work.", `.`, `.`), "solve.yaml": pair("solve", "You solve.", `.`, `.`),
	} {
		if err := write(w.path(path), text); err != nil {
			return nil, err
		}
	}
	if out, err := v.git(ctx, "init", "-q"); err != nil {
		return nil, fmt.Errorf("git: %w: %s", err, out)
	}
	for _, name := range []string{honest, "solve"} {
		if err := v.must(ctx, nil, "workflow", "put", w.path(name+".yaml")); err != nil {
			return nil, err
		}
	}
	v.before, err = v.state()
	return v, err
}

// write creates a file and its directories.
func write(path string, text []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o700))
}

func (v *victim) git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = v.cwd, v.env
	return cmd.CombinedOutput()
}

// inProject returns a path in the project.
func (v *victim) inProject(name string) string { return filepath.Join(v.cwd, name) }

// witness is a file that planted programs create.
func (v *victim) witness() string { return filepath.Join(v.outside, "planted-ran") }

// state returns the state of all files that must not change: those around the project, the user's except the
// caches of commands, and the config.
func (v *victim) state() (map[string]string, error) {
	state := map[string]string{}
	for _, root := range []string{v.outside, v.path("work"), filepath.Join(v.home, "config.yaml"), filepath.Join(v.home, ".env")} {
		if err := stateOf(state, root, v.cwd, filepath.Join(v.outside, "user/.cache/uwf")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return state, nil
}

// stateOf adds the files below a directory, except those below others.
func stateOf(state map[string]string, root string, except ...string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(except, path) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		state[path] = fmt.Sprint(info.Mode(), content)
		return nil
	})
}

func same(before, now map[string]string) error {
	for path, state := range now {
		if before[path] != state {
			return fmt.Errorf("%s is %s, was %q", path, state, before[path])
		}
	}
	for path := range before {
		if now[path] == "" {
			return fmt.Errorf("%s is gone", path)
		}
	}
	return nil
}

// unharmed checks that nothing outside has changed, that no planted program ran, which would show there, and
// that honest work completes.
func (v *victim) unharmed(ctx context.Context) error {
	now, err := v.state()
	if err != nil {
		return err
	}
	if err := same(v.before, now); err != nil {
		return fmt.Errorf("outside of the workspace: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(v.fooled, "said")); err != nil {
		return err
	}
	if err := v.works(ctx, honest); err != nil {
		return fmt.Errorf("honest work: %w", err)
	}
	return v.sound(ctx, &promise{})
}

// works runs a workflow to its end with the fool as agent.
func (v *victim) works(ctx context.Context, name string) error {
	var done struct{ Status string }
	if err := v.must(ctx, &done, "run", name, "-p", finish, "--agent", v.agent, "--format", "json"); err != nil {
		return err
	}
	if done.Status != "completed" {
		return fmt.Errorf("the run of %s is %s", name, done.Status)
	}
	return nil
}

// silent runs a command that may do anything except crash, hang, use excessive resources, or reveal the
// user's files.
func (v *victim) silent(ctx context.Context, args ...string) (ended, error) {
	e, err := v.uwf(ctx, args...)
	if err != nil {
		return e, err
	}
	for _, secret := range append(others(), canary, keys()["config.yaml"]) {
		if strings.Contains(string(e.Stdout)+e.Stderr, secret) {
			return e, fmt.Errorf("tells %q: %s", secret, e)
		}
	}
	return e, bounded(e)
}

// says sets the answer of the fool's maker.
func (v *victim) says(text string) error { return write(filepath.Join(v.fooled, "said"), []byte(text)) }

// pick returns one of several values at random.
func pick[T any](t *trial, list ...T) T { return list[t.random.IntN(len(list))] }
