//go:build unix && instruments

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// act is a command about a thread, and its expected result.
type act struct {
	name   string
	args   []string
	number string // of its agent's edits
	fails  bool   // it must be rejected
	// done updates the record after the command succeeded.
	done func(e ended)
}

// acts returns the commands that make sense for a thread.
func (c *coding) acts(th *coder) []func() act {
	return []func() act{
		func() act { return c.step(th) }, func() act { return c.step(th) }, func() act { return c.step(th) },
		func() act { return c.undo(th) }, func() act { return c.undo(th) }, func() act { return c.redo(th) }, func() act { return c.redo(th) },
		func() act { return c.poke(th) }, func() act { return c.fork(th) }, func() act { return c.replay(th) }, func() act { return c.apply(th) },
		c.clean,
	}
}

func (c *coding) coderArgs(number string) []string {
	return []string{"--agent", "sh " + c.path("agent.sh") + " " + c.path("edits/"+number)}
}

// settled reports whether a thread's work tree has the files expected after its last step.
func (c *coding) settled(th *coder) bool {
	return th.head() == "" || maps.Equal(c.disk[th.top], c.steps[th.head()].after)
}

// taken records a step of a thread.
func (c *coding) taken(th *coder, prefix []string, number string, before state) {
	c.Helper()
	chain := c.stepsOf(th)
	require.Len(c, chain, len(prefix)+1, "%s: one step is new", c.layout.name)
	require.Equal(c, prefix, chain[:len(prefix)])
	after := c.edited(before, c.edits[number])
	for _, old := range th.chain[len(prefix):] {
		c.dropped[old] = true
	}
	th.chain, th.undone, th.ended = chain, nil, c.status[number] == "done"
	c.steps[th.head()] = step{before, after, th.ended}
	c.disk[th.top] = after
}

// stepsOf returns the steps of a thread, without the start node.
func (c *coding) stepsOf(th *coder) []string {
	c.Helper()
	chain, err := c.chain(c.Context(), th.id)
	require.NoError(c, err)
	return slices.Clip(chain[1:])
}

func (c *coding) step(th *coder) act {
	status := one(c.random, "again", "again", "again", "done")
	if c.calm {
		status = "again"
	}
	number := c.fresh(status)
	args := append([]string{"thread", "step", th.id}, c.coderArgs(number)...)
	if th.ended {
		args = append([]string{"thread", "resume", th.id, "-p", "more", "-c", "1"}, c.coderArgs(number)...)
	}
	return act{name: "step", args: args, number: number, done: func(ended) {
		c.taken(th, th.chain, number, c.disk[th.top])
	}}
}

func (c *coding) undo(th *coder) act {
	return act{name: "undo", args: []string{"thread", "undo", th.id}, fails: th.head() == "" || !c.settled(th) && !maps.Equal(c.disk[th.top], c.steps[th.head()].before), done: func(ended) {
		last := th.head()
		th.chain, th.undone = th.chain[:len(th.chain)-1], append([]string{last}, th.undone...)
		th.ended = c.steps[th.head()].done
		c.disk[th.top] = c.steps[last].before
		c.dropped[last] = true
	}}
}

func (c *coding) redo(th *coder) act {
	a := act{name: "redo", args: []string{"thread", "redo", th.id}, fails: len(th.undone) == 0}
	if a.fails {
		return a
	}
	next := th.undone[0]
	a.fails = !maps.Equal(c.disk[th.top], c.steps[next].before) && !maps.Equal(c.disk[th.top], c.steps[next].after)
	a.done = func(ended) {
		th.chain, th.undone = append(slices.Clone(th.chain), next), th.undone[1:]
		c.disk[th.top] = c.steps[next].after
		th.ended = c.steps[next].done
		delete(c.dropped, next)
	}
	return a
}

// poke repeats the last step.
func (c *coding) poke(th *coder) act {
	number := c.fresh("again")
	a := act{name: "poke", args: append([]string{"thread", "retry", th.id, "-p", "once more"}, c.coderArgs(number)...), number: number, fails: th.head() == ""}
	if a.fails {
		return a
	}
	last := c.steps[th.head()]
	a.fails = !c.settled(th) && !maps.Equal(c.disk[th.top], last.before)
	a.done = func(ended) {
		c.taken(th, th.chain[:len(th.chain)-1], number, last.before)
	}
	return a
}

// topOf returns the top of a thread's work tree.
func (c *coding) topOf(id string) string {
	return filepath.Join(c.home, "worktrees", id)
}

// fork creates a thread from a step of a thread.
func (c *coding) fork(th *coder) act {
	a := act{name: "fork", args: []string{"thread", "fork", th.id}, fails: true}
	if len(th.chain) == 0 {
		return a
	}
	n := c.random.IntN(len(th.chain))
	at := th.chain[n]
	if c.steps[at].done {
		return c.step(th)
	}
	top, after := "", c.steps[at].after
	a.args, a.fails = []string{"thread", "fork", fmt.Sprintf("%s@%d", th.id, n+1), "--format", "json"}, c.layout.unborn
	switch where := one(c.random, "", "", "here", "keep"); {
	case where == "here" && !th.own:
		a.args, a.fails, top = append(a.args, "--files", where), !c.settled(th), th.top
	case where == "keep" && !th.own:
		a.args, a.fails, top, after = append(a.args, "--files", where), false, th.top, c.disk[th.top]
	}
	a.done = func(e ended) {
		var said struct{ Thread string }
		require.NoError(c, json.Unmarshal(e.Stdout, &said), "%s", e)
		made := c.add(said.Thread, top, th.chain[:n+1])
		if top == "" {
			made.top, made.own = c.topOf(made.id), true
		}
		c.disk[made.top] = after
	}
	return a
}

// replay repeats a step of a thread in another thread.
func (c *coding) replay(th *coder) act {
	if len(th.chain) == 0 {
		return c.step(th)
	}
	n, number := c.random.IntN(len(th.chain)), c.fresh("done")
	if n > 0 && c.steps[th.chain[n-1]].done {
		return c.step(th)
	}
	before := c.steps[th.chain[n]].before
	return act{name: "replay", args: append([]string{"thread", "replay", th.id, "--from", fmt.Sprint(n + 1), "--format", "json"}, c.coderArgs(number)...), fails: c.layout.unborn, done: func(e ended) {
		var said struct{ Thread string }
		require.NoError(c, json.Unmarshal(e.Stdout, &said), "%s", e)
		made := c.add(said.Thread, c.topOf(said.Thread), th.chain[:n])
		made.own = true
		c.taken(made, th.chain[:n], number, before)
	}}
}

// apply applies the result of a thread to the user's branch.
func (c *coding) apply(th *coder) act {
	a := act{name: "apply", args: []string{"thread", "apply", th.id}}
	if !th.own { // its files are the user's already
		a.done = func(e ended) { require.Contains(c, string(e.Stdout), `"already":true`) }
		return a
	}
	branch := "r" + strings.ToLower(th.id)
	a.args = append(a.args, "--branch", branch)
	a.done = func(ended) {
		want := maps.Clone(c.hidden)
		maps.Copy(want, c.disk[th.top])
		require.Equal(c, want, c.tree(c.git, branch), "%s: what is applied", c.layout.name)
		c.sh("git branch -D " + branch)
		require.Empty(c, c.sh("find "+c.git+"/objects/pack -name '*.keep'"), "%s: what is brought is let go", c.layout.name)
		th.applied = true
		c.user = c.gitFiles()
	}
	return a
}

// clean removes worktrees.
func (c *coding) clean() act {
	return act{name: "clean", args: []string{"thread", "worktrees", "--clean"}, done: func(ended) {}}
}

// agree checks that threads, their files and the store match the record.
func (c *coding) agree(after string, threads ...*coder) {
	c.Helper()
	after = c.layout.name + ", after " + after
	for _, th := range threads {
		if !slices.Contains(c.threads, th) {
			continue
		}
		require.Equal(c, th.chain, c.stepsOf(th), "%s: steps of %s", after, th.id)
		if _, err := os.Lstat(th.top); os.IsNotExist(err) && th.own && th.ended {
			continue // nothing was made in it, or it was removed
		}
		c.same(c.disk[th.top], c.read(th.top), "%s: files of %s", after, th.id)
		if head := th.head(); head != "" {
			after, before := c.kept(head)
			c.same(c.steps[head].after, c.visible(after), "step %s", head)
			if before != nil {
				c.same(c.steps[head].before, c.visible(before), "before step %s", head)
			}
		}
	}
	require.Equal(c, "key\n", c.sh("cat ignored"), after)
	require.Equal(c, c.user, c.gitFiles(), "%s: the person's repository", after)
	c.paidOnce()
}

// visible returns a state without files that are not checked out.
func (c *coding) visible(s state) state {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(path, what string) bool { return c.hidden[path] == what })
	return s
}

// same is like require.Equal but prints only the differences.
func (c *coding) same(want, have state, format string, args ...any) {
	c.Helper()
	for path := range want {
		require.Equal(c, want[path], have[path], "%s: %q", fmt.Sprintf(format, args...), path)
	}
	for path := range have {
		require.Contains(c, want, path, format, args)
	}
}

// paidOnce checks that work finished by agents exists, or was undone, and exists only once.
func (c *coding) paidOnce() {
	c.Helper()
	text, err := os.ReadFile(c.ledger.path)
	require.NoError(c, err)
	chains, once := map[string][]string{}, map[string]bool{}
	for _, th := range c.threads {
		chains[th.id] = th.chain
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line) // thread, head, step, edits
		require.Len(c, words, 4)
		if c.dropped[words[2]] || chains[words[0]] == nil {
			continue
		}
		require.Contains(c, chains[words[0]], words[2], "%s: lost: %s", c.layout.name, line)
		require.False(c, once[words[0]+words[1]], "%s: paid twice: %s", c.layout.name, line)
		once[words[0]+words[1]] = true
	}
}

// history runs random commands and checks after each that everything matches.
func (c *coding) history() int {
	const rounds = 10
	c.Helper()
	var told []string
	defer func() {
		if c.Failed() {
			c.Logf("%s:\n%s", c.layout.name, strings.Join(told, "\n"))
		}
	}()
	for range rounds {
		if c.random.IntN(8) == 0 {
			script := c.byHand()
			told = append(told, script)
			c.agree(script, c.threads...)
			continue
		}
		th := c.threads[c.random.IntN(len(c.threads))]
		all := c.acts(th)
		a := all[c.random.IntN(len(all))]()
		told = append(told, strings.Join(a.args, " "))
		e, err := c.uwf(c.Context(), a.args...)
		require.NoError(c, err)
		require.Equal(c, a.fails, e.Code != 0, "%s: %s", c.layout.name, e)
		if e.Code == 0 {
			a.done(e)
		}
		c.agree(fmt.Sprint(e), c.threads...)
	}
	c.whole()
	c.does(nil, "cas", "fsck")
	return rounds
}

// byHand performs actions of the user in between.
func (c *coding) byHand() string {
	c.Helper()
	script := one(c.random, "git commit -q --allow-empty -m more", "git gc -q --prune=now", "git stash list; git branch b$$; git tag t$$", "edit", "edit")
	if script != "edit" {
		_, _ = c.try(script) // git itself refuses if there is a lock, or no branch
		c.user = c.gitFiles()
		return script
	}
	number := c.fresh("")
	c.sh("edits=" + c.path("edits/"+number) + "; . $edits/run")
	c.disk[c.top] = c.edited(c.disk[c.top], c.edits[number])
	return "edits " + number
}

// whole checks that nothing is damaged.
func (c *coding) whole() {
	c.Helper()
	c.sh("git fsck --no-dangling --no-progress")
	if _, err := os.Stat(filepath.Join(c.home, "git")); err == nil { // otherwise no step was begun
		c.sh("git --git-dir " + c.store() + " fsck --no-dangling --no-progress")
	}
}
