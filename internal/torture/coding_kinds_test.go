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

// kinds returns the commands that touch files, by kind.
func (c *coding) kinds() map[string]func(*coder) act {
	return map[string]func(*coder) act{
		"step": c.step, "undo": c.undo, "redo": c.redo, "poke": c.poke, "fork": c.fork, "replay": c.replay,
		"apply": c.apply, "apply here": c.applyHere, "bisect": c.bisect, "clean": c.cleanEnded,
		"redact": c.redact, "export": c.export, "import": c.importing, "start": c.startOwn,
	}
}

// draw returns a command for a thread, of the applicable kind that was killed least often.
func (c *coding) draw(killed map[string]int) (*coder, act) {
	c.Helper()
	kinds := c.kinds()
	names := slices.Sorted(maps.Keys(kinds))
	c.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	slices.SortStableFunc(names, func(a, b string) int { return killed[a] - killed[b] })
	for _, name := range names {
		for _, i := range c.random.Perm(len(c.threads)) {
			th := c.threads[i]
			if a := kinds[name](th); a.name == name && !a.fails {
				return th, a
			}
		}
	}
	require.Fail(c, "nothing can be done", c.layout.name)
	return nil, act{}
}

// prepare makes a few steps, so that there is something to return to.
func (c *coding) prepare() {
	c.Helper()
	c.played(c.step(c.threads[0]))
	c.played(c.step(c.threads[0]))
	if c.layout.unborn {
		return
	}
	c.played(c.startOwn(nil))
	own := c.threads[len(c.threads)-1]
	c.played(c.step(own))
	c.played(c.step(own))
	c.played(c.undo(own))
}

// played runs a command without killing it.
func (c *coding) played(a act) {
	c.Helper()
	e, err := c.uwf(c.Context(), a.args...)
	require.NoError(c, err)
	require.Zero(c, e.Code, "%s: %s", c.layout.name, e)
	a.done(e)
}

// startOwn creates a thread with a worktree.
func (c *coding) startOwn(*coder) act {
	a := act{name: "start", args: []string{"thread", "start", c.path("code.yaml"), "-p", "x", "--workspace", "worktree", "--format", "json"}, fails: c.layout.unborn}
	if a.fails {
		return a
	}
	files := c.visible(c.tree(c.git, strings.TrimSpace(c.sh("git rev-parse HEAD"))))
	a.done = func(e ended) {
		made := c.add(c.threadOf(e), "", nil)
		made.top, made.own = c.topOf(made.id), true
		c.disk[made.top] = files
		require.FileExists(c, filepath.Join(made.top, c.layout.at, "ignored set-up"), "%s: %s", c.layout.name, e)
	}
	return a
}

// threadOf returns the thread that a command has created.
func (c *coding) threadOf(e ended) string {
	c.Helper()
	var said struct{ Thread string }
	require.NoError(c, json.Unmarshal(e.Stdout, &said), "%s", e)
	return said.Thread
}

// bisect searches for the step that created or removed a path.
func (c *coding) bisect(th *coder) act {
	a := act{name: "bisect", fails: true}
	if len(th.chain) < 2 || c.layout.unborn {
		return a
	}
	first, last := c.steps[th.chain[0]].after, c.steps[th.head()].after
	for _, path := range slices.Sorted(maps.Keys(merged(first, last))) {
		_, before := first[path]
		if _, now := last[path]; before == now {
			continue
		}
		test := fmt.Sprintf(`cd "$(git rev-parse --show-toplevel)"; echo x > left; test -f %[1]s || test -L %[1]s`, quoted(path))
		if !before {
			test = strings.Replace(test, "left; ", "left; ! { ", 1) + "; }"
		}
		a.fails, a.args = false, []string{"thread", "bisect", th.id + "@1", fmt.Sprintf("%s@%d", th.id, len(th.chain)), "--format", "json", "--", "sh", "-c", test}
		a.done = func(e ended) {
			var found struct{ First struct{ Number int } }
			require.NoError(c, json.Unmarshal(e.Stdout, &found), "%s", e)
			n := found.First.Number
			require.Greater(c, n, 1, "%s", e)
			_, was := c.steps[th.chain[n-2]].after[path]
			_, is := c.steps[th.chain[n-1]].after[path]
			require.Equal(c, []bool{before, !before}, []bool{was, is}, "%s: %s", c.layout.name, e)
		}
	}
	return a
}

func merged(a, b state) state {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// cleanEnded removes the worktree of an ended thread.
func (c *coding) cleanEnded(th *coder) act {
	a := act{name: "clean", args: []string{"thread", "worktrees", "--clean"}, fails: !th.own}
	if a.fails {
		return a
	}
	if !th.ended {
		c.does(nil, "thread", "kill", th.id)
	}
	c.threads = slices.DeleteFunc(c.threads, func(other *coder) bool { return other == th })
	a.done = func(e ended) {
		if _, err := os.Lstat(th.top); err == nil {
			require.True(c, th.head() == "" || th.applied || !c.settled(th), "%s: %s stays: %s", c.layout.name, th.id, e)
			c.same(c.disk[th.top], c.read(th.top), "files of %s, which is over", th.id)
		}
		if th.head() != "" {
			after, _ := c.kept(th.head())
			c.same(c.steps[th.head()].after, c.visible(after), "step %s", th.head())
		}
	}
	return a
}

// redact redacts a key in the snapshots of a thread with a worktree.
func (c *coding) redact(*coder) act {
	name := fmt.Sprint("ü/key-", c.random.Int64()) // later snapshots leave out a redacted path
	number := c.told([]edit{{name, file{"100644", fmt.Sprintln("key", c.random.Int64())}}}, "again")
	th := c.add(c.started("in-place"), c.top, nil)
	step := c.step(th)
	step.args = append([]string{"thread", "step", th.id}, c.coderArgs(number)...)
	step.done = func(ended) { c.taken(th, []string{}, number, c.disk[th.top]) }
	c.played(step)
	c.threads = slices.DeleteFunc(c.threads, func(other *coder) bool { return other == th })
	_, sum, _ := strings.Cut(c.disk[c.top][name], " ")
	require.NoError(c, c.has(sum), "a step keeps a key")
	return act{name: "redact", args: []string{"thread", "redact", th.id, "--files", name}, done: func(e ended) {
		require.Error(c, c.has(sum), "%s: the key is still there: %s", c.layout.name, e)
		require.Equal(c, th.chain, c.stepsOf(th))
		c.same(c.disk[c.top], c.read(c.top), "files beside a redaction")
		c.sh(`cd "$(git rev-parse --show-toplevel)"; rm ` + name)
		delete(c.disk[c.top], name)
	}}
}

// has returns an error if our git directory lacks an object.
func (c *coding) has(sum string) error {
	_, err := c.try("git --git-dir " + c.store() + " cat-file -e " + sum)
	return err
}

// export exports a thread with its files.
func (c *coding) export(th *coder) act {
	to := c.path(fmt.Sprintf("%d.uwfb", c.random.Int64()))
	return act{name: "export", args: []string{"thread", "export", th.id, "--files", "-o", to}, fails: len(th.chain) == 0, done: func(ended) {
		c.played(c.bringing(th, to))
	}}
}

// importing imports such a file into another home.
func (c *coding) importing(th *coder) act {
	if len(th.chain) == 0 {
		return act{fails: true}
	}
	from := c.path(fmt.Sprintf("%d.uwfb", c.random.Int64()))
	c.does(nil, "thread", "export", th.id, "--files", "-o", from)
	return c.bringing(th, from)
}

func (c *coding) bringing(th *coder, from string) act {
	home := c.path(fmt.Sprintf("home-%d", c.random.Int64()))
	want := slices.Clone(th.chain)
	return act{name: "import", args: []string{"--home", home, "thread", "import", from, "--links"}, done: func(e ended) {
		there, w := *c, *c.world
		w.home, w.env = home, append(slices.Clip(w.env), "UWF_HOME="+home)
		there.world = &w
		require.Equal(c, want, there.stepsOf(th), "%s: %s", c.layout.name, e)
		for _, hash := range want {
			after, before := there.kept(hash)
			c.same(c.steps[hash].after, c.visible(after), "step %s, elsewhere", hash)
			if before != nil {
				c.same(c.steps[hash].before, c.visible(before), "before step %s, elsewhere", hash)
			}
		}
		there.does(nil, "cas", "fsck")
		require.NoError(c, os.RemoveAll(home))
		require.NoError(c, os.Remove(from))
	}}
}
