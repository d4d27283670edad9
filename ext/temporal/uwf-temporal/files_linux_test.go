//go:build temporal

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// Workers have no clone: the files of a thread come from the remote to each machine that makes a step, and go
// back there.
func TestFilesAtWorkers(t *testing.T) {
	files := map[string]string{
		"edit.yaml": editWorkflow, "kids.yaml": childrenWorkflow, "shared.yaml": sharedWorkflow,
		"repo/a": "one\n", "repo/sub/b": "two\n", "repo/.gitignore": "ignored\n",
		"home/config.yaml": "commands: { sandbox: { mode: none } }\nagents: { nobody: { command: \"false\" } }\ndefaultAgent: nobody\n",
		"go-on":            "",
	}
	w := newTeam(t, nil, files)
	w.environ = append(w.environ, "GIT_CONFIG_GLOBAL="+w.path("gitconfig"))
	w.write(t, map[string]string{"gitconfig": "[user]\n\tname = Ann\n\temail = ann@example.com\n"})
	w.git(t, "init", "-q")
	w.git(t, "add", ".")
	w.git(t, "commit", "-q", "-m", "first")

	// The same on a single machine.
	single := ask[protocol.RunOutput](t, w, "uwf", "run", "./edit.yaml", "-p", "Go", "--cwd", w.path("repo/sub"), "--workspace", "worktree")
	require.Equal(t, protocol.StatusCompleted, single.Status)
	want := w.trees(t, single.Thread)
	require.Len(t, want, 3)

	text := strings.ReplaceAll(string(must(os.ReadFile(w.path("home/temporal.yaml")))), "maxConcurrentSteps: 3", "maxConcurrentSteps: 2") + "queues: { edit: { second: other } }\n"
	w.write(t, map[string]string{"home/temporal.yaml": text})
	require.NoError(t, os.CopyFS(w.path("home-other"), os.DirFS(w.path("home"))))
	other := *w
	other.slots = memory(t)
	other.environ = append(slices.Clone(w.environ), "UWF_HOME="+w.path("home-other"))
	w.write(t, map[string]string{"home-other/temporal.yaml": strings.ReplaceAll(text, w.slots, other.slots)})
	w.serve(t)
	second := other.serve(t, "--queue", "other")

	t.Run("a thread on two machines, one of which dies in the middle", func(t *testing.T) {
		require.NoError(t, errors.Join(os.Remove(w.path("go-on")), os.Remove(w.path("begun"))))
		in := *w
		in.dir = w.path("repo/sub")
		thread := ask[started](t, &in, "uwf-temporal", "run", w.path("edit.yaml"), "-p", "Go", "--workspace", "worktree").Thread
		w.eventually(t, "its second role begins", func() bool { _, err := os.Stat(w.path("begun")); return err == nil })
		signal(tree(second.cmd.Process.Pid), 9)
		_ = second.cmd.Wait()
		w.write(t, map[string]string{"go-on": ""})
		second.start(t)
		w.ended(t, thread, "completed")
		w.run(t, "uwf", "pull", thread)
		require.Equal(t, want, w.trees(t, thread), "the states of the files are those of one machine")
		w.run(t, "uwf", "thread", "apply", thread, "--cwd", w.path("repo"))
		require.Equal(t, "two\nfirst\nsecond\n", string(must(os.ReadFile(w.path("repo/sub/b")))))
		require.Equal(t, "two\nfirst\n", string(must(os.ReadFile(w.path("repo/sub/seen")))))
		require.Empty(t, w.git(t, "status", "--porcelain"))
		found := must(filepath.Glob(filepath.Join(other.slots, "worker-*", "nodes-*-files", "slot-*", "imported-sha1")))
		require.NotEmpty(t, found, "what was brought need not be brought again")
	})
	t.Run("children in worktrees, so many at once as their role says", func(t *testing.T) {
		in := *w
		in.dir = w.path("repo")
		thread := ask[started](t, &in, "uwf-temporal", "run", w.path("kids.yaml"), "-p", "Go", "--wait").Thread
		require.NoFileExists(t, w.path("crowd"), "two at once, at most one is allowed")
		w.run(t, "uwf", "pull", thread)
		w.run(t, "uwf", "thread", "apply", thread, "--cwd", w.path("repo"))
		for _, name := range []string{"one", "two", "three"} {
			require.Equal(t, "made\n", string(must(os.ReadFile(w.path("repo/"+name)))))
		}
	})
	t.Run("what a worker cannot have is refused before anybody is asked", func(t *testing.T) {
		in := *w
		in.dir = w.path("repo")
		_, err := in.try("uwf-temporal", "run", w.path("shared.yaml"), "-p", "Go", "--wait")
		require.ErrorContains(t, err, "children")
		require.NoFileExists(t, w.path("asked"))
		require.Contains(t, w.log(), `"code":"invalid"`)
		listed := ask[[]worked](t, w, "uwf-temporal", "list", "--all")
		require.True(t, slices.ContainsFunc(listed, func(l worked) bool { return l.Status == "failed" }))
	})
}

// git runs git in the repository.
func (w *team) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.path("repo"), w.environ
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return string(out)
}

// trees returns the states of the files after each step of a thread.
func (w *team) trees(t *testing.T, thread string) (all []protocol.Tree) {
	t.Helper()
	for i := range 9 {
		out, err := w.try("uwf", "step", "show", thread+"@"+string(rune('1'+i)), "--format", "json")
		if err != nil {
			break
		}
		var step struct{ Files *protocol.Files }
		require.NoError(t, json.Unmarshal(out, &step))
		require.NotNil(t, step.Files, "%s", out)
		all = append(all, step.Files.Tree)
	}
	return all
}

const editWorkflow = `name: edit
description: Three edit files, one after the other.
roles:
  first: { description: Edits., run: [sh, -c, "echo first >>b; cp b seen; echo x >ignored"] }
  second: { description: Edits., run: [sh, -c, "touch $TEAM/begun; while ! test -e $TEAM/go-on; do sleep 0.1; done; echo second >>b"] }
  third: { description: Looks., run: [sh, -c, "grep -q second b"] }
graph:
  $START: { _: { role: first, prompt: "Begin." } }
  first: { passed: { role: second, prompt: "Go on." }, failed: $END }
  second: { passed: { role: third, prompt: "End." }, failed: $END }
  third: { passed: $END, failed: $END }
`

const childrenWorkflow = `name: kids
description: Three make a file each.
roles:
  make: { description: Makes., run: [sh, -c, "mkdir $TEAM/alone || touch $TEAM/crowd; sleep 0.5; echo made >{{{$prompt}}}; rmdir $TEAM/alone"] }
  all:
    description: All make something.
    parallel: 1
    workspace: worktree
    merge: true
    all:
      one: { role: make, prompt: one }
      two: { role: make, prompt: two }
      three: { role: make, prompt: three }
graph:
  $START: { _: { role: all, prompt: "Go." } }
  all: { done: $END, failed: $END, conflict: $END }
`

const sharedWorkflow = `name: shared
description: One works in the files of its parent.
roles:
  make: { description: Makes., run: [sh, -c, "touch $TEAM/asked"] }
  all: { description: It makes something., all: { one: { role: make, prompt: one } } }
graph:
  $START: { _: { role: all, prompt: "Go." } }
  all: { done: $END, failed: $END }
`
