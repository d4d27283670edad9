package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
)

// remoteRows measure the cost of pushing and pulling a thread. The files are removed only at the end, because
// ext4 without a journal is slow to create files in the minute after many were removed.
func (w *world) remoteRows() []row {
	const steps = 1000
	return []row{
		versus("remote/push of 1,000 steps", w.push(steps), 1.2, "git push of as much", w.gitPush(steps)),
		versus("remote/pull of 1,000 steps", w.pull(steps), 2, "git clone of as much", w.gitClone(steps)),
	}
}

// push pushes a thread to an empty directory.
func (w *world) push(steps int) side {
	return func(b testing.TB) float64 {
		p, to := w.chain(b, steps), w.path(fmt.Sprint("pushed-", w.fresh(1)))
		return timed(func(b testing.TB) { w.uwf(b, p.home, "push", p.thread, to) })(b)
	}
}

// pull pulls a thread into an empty home.
func (w *world) pull(steps int) side {
	return func(b testing.TB) float64 {
		p, from := w.pushed(b, steps)
		home := w.path(fmt.Sprint("pulled-", w.fresh(1)))
		return timed(func(b testing.TB) { w.uwf(b, home, "pull", p.thread, from) })(b)
	}
}

// pushed returns a chain, and a remote that has it.
func (w *world) pushed(b testing.TB, steps int) (p place, dir string) {
	p = w.chain(b, steps)
	return p, fixture(w, fmt.Sprint("a remote of steps ", steps), func() string {
		dir := w.path(fmt.Sprint("remote-", steps))
		w.uwf(b, p.home, "push", p.thread, dir)
		return dir
	})
}

// gitPush pushes a repository to an empty one.
func (w *world) gitPush(steps int) side {
	return func(b testing.TB) float64 {
		from, to := w.gitOf(b, steps), w.path(fmt.Sprint("pushed-", w.fresh(1)))
		w.git(b, w.dir, "init", "-q", "--bare", to)
		return timed(func(b testing.TB) { w.git(b, from, "push", "-q", to, "main") })(b)
	}
}

// gitClone clones it over git's network protocol.
func (w *world) gitClone(steps int) side {
	return func(b testing.TB) float64 {
		from, to := w.gitOf(b, steps), w.path(fmt.Sprint("cloned-", w.fresh(1)))
		return timed(func(b testing.TB) { w.git(b, w.dir, "clone", "-q", "--bare", "--no-local", from, to) })(b)
	}
}

// gitOf is a repository with the nodes of a thread as its files, and a commit for each step.
func (w *world) gitOf(b testing.TB, steps int) string { return w.gitWith(b, "nodes", steps, w.chain) }

func (w *world) gitWith(b testing.TB, name string, steps int, of func(testing.TB, int) place) string {
	return fixture(w, fmt.Sprint("a repository of ", name, steps), func() string {
		dir := w.path(fmt.Sprint("git-", name, "-", steps))
		w.git(b, w.dir, "init", "-q", "-b", "main", dir)
		s, head := open(b, of(b, steps))
		var script bytes.Buffer
		var names []string
		mark := 0
		err := graph.BottomUp(b.Context(), s, []cas.Hash{head}, graph.BottomUpOptions{}, func(v graph.Visited) error {
			file := cas.MarshalFile(v.Node)
			mark++
			fmt.Fprintf(&script, "blob\nmark :%d\ndata %d\n%s\n", mark, len(file), file)
			names = append(names, fmt.Sprintf("M 100644 :%d %s/%s.bin\n", mark, v.Node.Hash[:2], v.Node.Hash))
			kind, _, err := s.Kinds().Of(b.Context(), s, v.Node.Type)
			if kind != protocol.KindStep || err != nil {
				return err
			}
			fmt.Fprintf(&script, "commit refs/heads/main\ncommitter u <u> 1780000000 +0000\ndata 4\nstep\n")
			for _, name := range names {
				script.WriteString(name)
			}
			names = nil
			return nil
		})
		require.NoError(b, err)
		cmd := exec.CommandContext(b.Context(), "git", "fast-import", "--quiet")
		cmd.Dir, cmd.Stdin = dir, &script
		run(b, cmd)
		return dir
	})
}
