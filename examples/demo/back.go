package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// hasGit reports whether files can be kept.
func hasGit() bool {
	_, err := exec.LookPath("git")
	return err == nil
}

// git runs git in the project.
func (d *demo) git(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir, c.Env = d.project, d.childEnv()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// goBack forks from the first rejection, with its files, and takes another path from there, while the same
// task is started again: two threads work on one repository concurrently, and one result is applied to its
// branch.
func (d *demo) goBack(ctx context.Context, rejected string) error {
	d.prompt("git checkout .        # nothing is lost: the steps have the files")
	if err := d.git(ctx, "checkout", "-q", "."); err != nil {
		return err
	}
	d.prompt("uwf thread fork " + rejected)
	var fork result
	if err := d.ask(ctx, &fork, "thread", "fork", rejected); err != nil {
		return err
	}
	commands := [][]string{
		{"thread", "step", fork.Thread, "--until-end"},
		{"run", "solve-issue", "-p", task, "--cwd", d.project, "--workspace", "worktree"},
	}
	for _, args := range commands {
		d.prompt("uwf " + strings.Join(quoted(args), " ") + " &")
	}
	if err := d.atOnce(ctx, commands); err != nil {
		return err
	}
	if err := d.expectTests(ctx, red); err != nil {
		return fmt.Errorf("promised: threads in worktrees leave your files alone: %w", err)
	}
	if err := d.show(ctx, "thread", "worktrees", "--format", "text"); err != nil {
		return err
	}
	if err := d.show(ctx, "thread", "apply", fork.Thread, "--cwd", d.project, "--format", "text"); err != nil {
		return err
	}
	return d.expectTests(ctx, green)
}

// atOnce runs commands concurrently. It shows the output of the first one live, and that of the others
// afterwards, each in one piece.
func (d *demo) atOnce(ctx context.Context, commands [][]string) error {
	errs := make([]error, len(commands))
	printed := make([]bytes.Buffer, len(commands))
	var all sync.WaitGroup
	for i, args := range commands {
		one := *d
		if i > 0 {
			one.progress = &printed[i]
		}
		all.Go(func() { errs[i] = one.ask(ctx, &result{}, args...) })
	}
	all.Wait()
	for i := 1; i < len(commands); i++ {
		fmt.Fprintf(d.progress, "\nMeanwhile: uwf %s\n%s", strings.Join(quoted(commands[i]), " "), printed[i].String())
	}
	return errors.Join(errs...)
}

// quoted quotes the words of a command as a person would type them.
func quoted(args []string) []string {
	words := make([]string, len(args))
	for i, word := range args {
		words[i] = shellQuote(word)
	}
	return words
}
