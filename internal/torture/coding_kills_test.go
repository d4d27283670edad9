//go:build unix && instruments

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/torture/trace"
)

// After any kill, even during the user's own commits, rebases and garbage collections, the user's repository
// is as they left it, nothing is damaged, and threads continue without repeating finished work.
func TestKilledCoding(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	until := tools.env.Now().Add(*long)
	all := layouts()
	killed, known, rounds := map[string]int{}, map[string]extent{}, 0
	const atLeast = 8
	for n := uint64(0); rounds < atLeast || tools.env.Now().Before(until); n++ {
		random := rand.New(rand.NewPCG(*seeds+n, 17))
		l := all[random.IntN(len(all))]
		if w := os.Getenv("LAYOUT"); w != "" {
			for _, x := range all {
				if x.name == w {
					l = x
				}
			}
		}
		t.Run(fmt.Sprint(*seeds+n), func(t *testing.T) {
			c := newCoding(t, tools, l, random)
			rounds += c.killing(killed, known)
		})
		if t.Failed() {
			break
		}
	}
	sum := 0
	for _, n := range killed {
		sum += n
	}
	t.Logf("seed %d: %d of %d commands killed: %v", *seeds, sum, rounds, killed)
	require.Positive(t, sum)
}

// killing kills random commands.
func (c *coding) killing(killed map[string]int, known map[string]extent) int {
	c.calm = true
	require.NoError(c, write(filepath.Join(c.home, "config.yaml"), []byte("timeout: 10m\nworkspace: { setup: [sh, -c, \"echo x > 'ignored set-up'\"] }\n")))
	_, _ = c.try("git worktree add -q " + c.path("person") + " -b person")
	c.user = c.gitFiles()
	c.prepare()
	var told []string
	defer func() {
		if c.Failed() {
			c.Logf("%s:\n%s", c.layout.name, strings.Join(told, "\n"))
		}
	}()
	rounds := 8
	if *long > 0 {
		rounds = 16
	}
	for range rounds {
		th, a := c.draw(killed)
		if a.name == "apply here" {
			c.sh("git add -A; git commit -q --allow-empty -m all")
			c.user = c.gitFiles()
		}
		beside := c.beside()
		e, how, hit := c.kill(a, known)
		told = append(told, how+": "+strings.Join(a.args, " "))
		if beside() {
			told = append(told, "beside a person's own commands")
		}
		if hit {
			killed[a.name]++
		}
		c.recover(th, a, e, hit)
		c.agree(fmt.Sprintf("%s: %s", how, e), th, c.threads[len(c.threads)-1])
		c.whole()
	}
	c.agree("all", c.threads...)
	c.owned()
	c.does(nil, "cas", "fsck")
	return rounds
}

// owned checks that no worktrees remain except those of threads.
func (c *coding) owned() {
	c.Helper()
	c.does(nil, "thread", "worktrees", "--clean")
	listed, err := c.uwf(c.Context(), "thread", "list", "--all", "--format", "json")
	require.NoError(c, err)
	known := string(listed.Stdout) + strings.ToLower(string(listed.Stdout))
	left := c.sh("ls -A " + c.home + "/worktrees " + c.git + "/worktrees || true; cd " + c.home + "/runs; ls -d */restore.json || true; git -C " + c.top + " branch --format='%(refname:short)' --list 'uwf/*'")
	for _, name := range strings.Fields(left) {
		name = strings.TrimSuffix(filepath.Base(name), "/restore.json")
		_, end, _ := strings.Cut(name, "code-")
		if len(name) == len(c.threads[0].id) || strings.HasPrefix(name, ".gone") || end != "" {
			require.Contains(c, known, cmp.Or(end, name), "%s: left: %s", c.layout.name, left)
		}
	}
}

// beside starts an action of the user at the same time. The returned function waits for its end.
func (c *coding) beside() (end func() bool) {
	c.Helper()
	if c.layout.unborn || c.random.IntN(3) > 0 {
		return func() bool { return false }
	}
	cmd := exec.Command("sh", "-c", one(c.random,
		"git commit -q --allow-empty -m more; git gc -q --prune=now",
		"git gc -q --prune=now; git tag t$$",
		"cd ../person && echo $$ > p && git add p && git commit -q -m p && git rebase -q --onto old HEAD~1; git gc -q --prune=now",
		"git branch b$$; git commit -q --allow-empty -m x; git reflog expire --expire=now --all; git gc -q --prune=now",
	))
	cmd.Dir, cmd.Env = c.top, c.env
	require.NoError(c, cmd.Start())
	return func() bool {
		_ = cmd.Wait() // git may find a lock
		c.user = nil
		return true
	}
}

// extent is the largest observed size of a command.
type extent struct {
	calls int
	time  time.Duration
}

// kill starts a command and kills it, or one of its programs, at a random moment or before a random system
// call.
func (c *coding) kill(a act, known map[string]extent) (e ended, how string, hit bool) {
	c.Helper()
	var err error
	most := known[a.name]
	switch fault := one(c.random, "", "", "", "kill", "kill all"); {
	case fault != "":
		const some = 150
		plan := trace.Plan{Under: c.dir, Fault: trace.Fault(fault), At: 1 + c.random.IntN(cmp.Or(most.calls, some))}
		var out trace.Outcome
		e, err = c.run(c.Context(), func(cmd *exec.Cmd) (err error) {
			out, err = trace.Run(cmd, plan)
			return err
		}, a.args)
		if errors.Is(err, trace.ErrUnsupported) {
			return c.kill(a, known)
		}
		e.Code, e.Signal = out.Code, out.Signal
		most.calls = max(most.calls, out.Calls)
		how, hit = fmt.Sprintf("%s at call %d, %s", fault, plan.At, out.Hit), out.WasHit
	default:
		after, began := time.Duration(c.random.Float64()*float64(max(most.time, 300*time.Millisecond))), time.Now()
		e, hit, err = c.killed(c.Context(), after, a.args)
		how = fmt.Sprint("killed after ", after)
		if !hit {
			most.time = max(most.time, time.Since(began))
		}
	}
	known[a.name] = most
	require.NoError(c, err)
	require.NoError(c, e.sane())
	return e, how, hit
}

// idle waits for agents that have outlived their command.
func (c *coding) idle() {
	c.Helper()
	var running []struct{ Thread string }
	c.does(&running, "thread", "list", "--status", "running", "--format", "json")
	for _, r := range running {
		_, err := c.uwf(c.Context(), "thread", "wait", r.Thread)
		require.NoError(c, err)
	}
}

// again runs a command until it succeeds or is rejected; locks of a killed process may still be held for a
// moment.
func (c *coding) again(a act) ended {
	c.Helper()
	const tries = 50
	for range tries {
		c.idle()
		e, err := c.uwf(c.Context(), a.args...)
		require.NoError(c, err)
		if e.Code != exitLocked {
			return e
		}
	}
	require.Fail(c, "stays locked", "%v", a.args)
	return ended{}
}

// recover continues after a command was killed, as a user would, and updates the record.
func (c *coding) recover(th *coder, a act, e ended, hit bool) {
	c.Helper()
	c.idle()
	if hit && a.name == "clean" { // a command without one of its programs reports what stays
		e = c.again(a)
	}
	if c.user == nil {
		c.user = c.gitFiles()
	}
	if e.Code == 0 && !c.withoutFiles(th, a) || !hit && a.name == "apply here" {
		a.done(e)
		return
	}
	require.True(c, hit || e.Code == 0, "%s", e)
	switch a.name {
	case "step", "poke":
		if !slices.Equal(c.stepsOf(th), th.chain) || e.Code == 0 {
			c.found(th, a)
			return
		}
		e = c.again(a)
		if e.Code != 0 && a.name == "poke" && strings.Contains(e.Stderr, "--keep-files") { // files changed by its agent
			a.args = append(a.args, "--keep-files")
			e = c.again(a)
		}
		require.Zero(c, e.Code, "%s", e)
		c.found(th, a)
	case "undo", "redo":
		if slices.Equal(c.stepsOf(th), th.chain) {
			if c.random.IntN(2) == 0 {
				a = c.step(th)
				e = c.again(a)
				require.Zero(c, e.Code, "%s", e)
				c.found(th, a)
				return
			}
			e = c.again(a)
			require.Zero(c, e.Code, "%s", e)
		}
		a.done(e)
	case "fork", "replay":
		e = c.again(a)
		require.Zero(c, e.Code, "%s", e)
		if !c.withoutFiles(th, a) {
			a.done(e)
		}
	case "apply here":
		a.done(c.again(a))
	case "redact":
		if e = c.again(a); e.Code != 0 {
			require.Contains(c, e.Stderr, "no state of the files")
		}
		a.done(e)
	case "export":
		if file := a.args[len(a.args)-1]; exists(file) {
			c.does(nil, "verify", file)
		}
		e = c.again(a)
		require.Zero(c, e.Code, "%s", e)
		a.done(e)
	default:
		e = c.again(a)
		require.Zero(c, e.Code, "%s", e)
		a.done(e)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// found updates the record after a step by a command that may have changed some files before it was killed.
func (c *coding) found(th *coder, a act) {
	c.Helper()
	chain := c.stepsOf(th)
	prefix := th.chain
	if a.name == "poke" {
		prefix = prefix[:len(prefix)-1]
	}
	require.Len(c, chain, len(prefix)+1, "%v", a.args)
	require.Equal(c, prefix, chain[:len(prefix)])
	if c.withoutFiles(th, a) {
		return
	}
	made := chain[len(prefix)]
	after, before := c.kept(made)
	if before == nil {
		before, _ = c.kept(prefix[len(prefix)-1])
	}
	before = c.visible(before)
	may := []state{c.disk[th.top]}
	for _, at := range append(slices.Clone(th.chain), th.undone...) {
		may = append(may, c.steps[at].before, c.steps[at].after)
	}
	for _, s := range append(may, before) {
		for path := range s {
			if slices.ContainsFunc(c.edits[a.number], func(e edit) bool { return touched(e.path, path) }) {
				continue // the agent may have been killed during it
			}
			require.True(c, slices.ContainsFunc(may, func(s state) bool { return s[path] == before[path] }), "%s: the files before step %s: %q is %q", c.layout.name, made, path, before[path])
		}
	}
	want := c.edited(before, c.edits[a.number])
	c.same(want, c.visible(after), "after step %s", made)
	for _, old := range th.chain[len(prefix):] {
		c.dropped[old] = true
	}
	th.chain, th.undone, th.ended = chain, nil, false
	c.steps[made] = step{before: before, after: want}
	c.disk[th.top] = want
}

// touched reports whether a change to one path may affect another.
func touched(edit, path string) bool {
	return path == edit || strings.HasPrefix(path, edit+"/") || strings.HasPrefix(edit, path+"/")
}

// withoutFiles reports whether the last step of a thread has no snapshot because a program was killed. The
// thread is then dropped.
func (c *coding) withoutFiles(th *coder, a act) bool {
	c.Helper()
	if a.name != "step" && a.name != "poke" {
		return false
	}
	chain := c.stepsOf(th)
	var shown struct{ Files *struct{ Tree string } }
	if len(chain) > 0 {
		c.does(&shown, "step", "show", chain[len(chain)-1], "--format", "json")
	}
	if len(chain) == 0 || shown.Files != nil {
		return false
	}
	c.threads = slices.DeleteFunc(c.threads, func(other *coder) bool { return other == th })
	c.disk[th.top] = c.read(th.top)
	c.add(c.started("in-place"), c.top, nil)
	return true
}

// applyHere applies the result of a thread to the user's branch, where everything is committed. Both may have
// changed a file.
func (c *coding) applyHere(th *coder) act {
	a := act{name: "apply here", args: []string{"thread", "apply", th.id}, fails: !th.own || c.layout.name == "nested"} // everything is committed, and snapshots record that
	a.done = func(e ended) {
		if e.Code != 0 {
			require.Contains(c, e.Stderr, "hint:")
			c.user = c.gitFiles()
			return
		}
		var said struct{ Commit string }
		require.NoError(c, json.Unmarshal(e.Stdout, &said), "%s", e)
		c.sh("git merge-base --is-ancestor " + said.Commit + " HEAD")
		c.disk[c.top] = c.read(c.top)
		require.Empty(c, c.sh("git status --porcelain --ignore-submodules=all"), "%s: %s", c.layout.name, e)
		c.user = c.gitFiles()
	}
	if _, err := os.Stat(filepath.Join(c.top, ".git", "index.lock")); err == nil {
		a.fails = true
	}
	return a
}

// killed starts a command and kills it after a while, unless it has ended by then. Its agent, if any,
// survives.
func (w *world) killed(ctx context.Context, after time.Duration, args []string) (ended, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	e, err := w.run(ctx, (*exec.Cmd).Run, args)
	if err == nil {
		err = e.sane()
	}
	return e, e.Signal != "", err
}
