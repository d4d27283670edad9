package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// planted tests programs with known names in workspace directories on the PATH. They leave a witness outside
// the workspace if they run unconfined.
func planted(ctx context.Context, t *trial, v *victim) error {
	dirs := []string{v.inProject(".venv/bin"), v.inProject("node_modules/.bin"), v.inProject("bin"), ".", ""}
	t.random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	dirs = dirs[:1+t.random.IntN(len(dirs))]
	path := strings.Join(append(dirs, v.bin, t.env.Get("PATH")), string(os.PathListSeparator))
	v.env = append(slices.Clone(v.env), "PATH="+path)
	program := "#!/bin/sh\nset > " + v.witness() + "\nexit 0\n"
	byModel := t.random.IntN(2) == 0
	var calls []call
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dir = v.cwd
		}
		for _, name := range []string{"git", "rg", "sh", "bash", "less", "cat", "uwf", "uwf-builtin", "node", "env", "python3"} {
			file := filepath.Join(dir, name)
			if byModel {
				calls = append(calls, call{tool: "run_command", args: map[string]string{"command": fmt.Sprintf("mkdir -p %q; printf %%b %q > %q; chmod 755 %q", dir, program, file, file)}})
				continue
			}
			if err := write(file, []byte(program)); err != nil {
				return err
			}
		}
	}
	uses := []call{
		{tool: "grep", args: map[string]string{"pattern": "Project"}}, {tool: "glob", args: map[string]string{"pattern": "**/*"}}, {tool: "list_dir", args: map[string]string{"path": "."}},
		{tool: "run_command", args: map[string]string{"command": "git status; rg x; node; true"}},
	}
	for _, list := range [][]call{calls, uses, uses} {
		v.calls <- list
		if err := v.must(ctx, nil, "run", "solve", "-p", finish, "--agent", "bare"); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"thread", "read", "@"}, {"workflow", "list"}} {
		if _, err := v.onTerminal(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
