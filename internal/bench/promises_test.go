package bench

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

var (
	bin  = flag.String("bin", "", "directory with the programs that are measured; default: they are built")
	full = flag.Bool("full", false, "also 100,000 steps and threads, 1,000,000 nodes, 200 threads at once")
	dagu = flag.String("dagu", "", "path of Dagu 1.30.2 (npm: @dagu-org/dagu-linux-x64), with which some rows compare; default: they are skipped")
)

// BenchmarkPromise measures all rows.
func BenchmarkPromise(b *testing.B) {
	w := &world{dir: b.TempDir(), bin: *bin, full: *full, made: map[string]any{}}
	if w.bin == "" {
		w.bin = b.TempDir()
		for _, name := range append(protocol.OwnAgents(), "uwf", "uwf-remote-file", "uwf-web") {
			build(b, w.program(name), "cmd/"+name)
		}
	}
	for _, r := range w.rows() {
		b.Run(r.name, r.run)
	}
}

// rows returns all rows, by family.
func (w *world) rows() []row {
	return slices.Concat(w.stepRows(), w.peopleRows(), w.memoryRows(), w.startRows(), w.readingRows(), w.listRows(), w.storeRows(), w.logRows(),
		w.loadRows(), w.manyRows(), w.filesRows(), w.remoteRows())
}

// stepRows measure the cost of a step, and that it does not depend on the length of the thread or the size of
// the store.
func (w *world) stepRows() []row {
	lengths, nodes := []int{1, 100, 10_000}, []int{1_000, 10_000, 100_000}
	if w.full {
		lengths, nodes = append(lengths, 100_000), append(nodes, 1_000_000)
	}
	step := func(n int) side { return timed(w.stepOf(w.chain, n)) }
	return []row{
		versus("step/no-op agent", step(10), 2.5, theFloor, timed(w.floor)),
		versus("step/command role", timed(w.commandStep), 1.05, "a step of an agent, with an empty program for the agent's start", w.withoutAgent),
		versus("step/at 10,000 steps", step(10_000), 1.3, "at 10 steps", step(10)),
		grows("step/in a long thread", 0.05, lengths, func(n int) side {
			if n == 1 {
				return w.secondStep
			}
			return step(n)
		}),
		grows("step/in a large store", 0.05, nodes, func(n int) side { return timed(w.stepOf(w.amid, n)) }),
	}
}

// stepOf makes a step of a fixture's thread.
func (w *world) stepOf(of func(testing.TB, int) place, n int) func(testing.TB) {
	return func(b testing.TB) { w.step(b, of(b, n)) }
}

// secondStep measures the second step of a thread, a new thread each time.
func (w *world) secondStep(b testing.TB) float64 {
	p := w.chain(b, 1)
	p.thread = w.start(b, p.home)
	w.step(b, p)
	return timed(func(b testing.TB) { w.step(b, p) })(b)
}

// commandStep makes a step of a role that is a command: the empty program.
func (w *world) commandStep(b testing.TB) {
	p := fixture(w, "a thread of commands", func() place {
		p := place{home: w.path("commands")}
		file := w.file(b, "commands.yaml", fmt.Sprintf(`name: commands
description: Runs a command again and again.
limits: { maxSteps: 1000000 }
roles: { go: { description: Goes., run: [%q] } }
graph: { $START: { _: go }, go: { passed: go, failed: $END } }
`, w.helper(b, "empty")))
		p.thread = w.uwf(b, p.home, "thread", "start", file, "-p", "task", "--cwd", w.dir, "--format", "text")
		w.uwf(b, p.home, "config", "set", "commands.sandbox.mode", "none") // the agent is not sandboxed either
		w.uwf(b, p.home, "thread", "step", p.thread, "-c", "10")
		return p
	})
	w.uwf(b, p.home, "thread", "step", p.thread)
}

// withoutAgent measures a step of an agent, with the start of an empty program instead of the agent's own
// start.
func (w *world) withoutAgent(b testing.TB) float64 {
	step := timed(w.stepOf(w.chain, 10))(b)
	agent := timed(func(b testing.TB) { run(b, w.command(b, w.dir, w.program("uwf-mock"), "--help")) })(b)
	return step - agent + timed(w.empty)(b)
}

const theFloor = "2 empty programs and 12 flushed files"

// floor is what a step is compared with, whatever uwf itself flushes: two empty programs one after the other, and
// twelve flushed files.
func (w *world) floor(b testing.TB) {
	w.empty(b)
	w.empty(b)
	require.NoError(b, w.flushed(12))
}

// flushed writes and flushes n small new files. Goroutines may call it at once.
func (w *world) flushed(n int) error {
	dir, err := os.MkdirTemp(w.dir, "floor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for i := range n {
		f, err := os.Create(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		_, err = f.Write(make([]byte, 600))
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// flushes makes what a step writes durable: four new nodes (output, detail, prompt, step) in the log, and the file
// of the heads.
func (w *world) flushes() error {
	const nodes, size = 4, 600
	return errors.Join(
		os.MkdirAll(w.path("floor"), 0o755),
		durable.OS().Append(w.path("floor", "log"), make([]byte, nodes*size), 0o644, durable.FullFlush),
		durable.WriteFile(durable.OS(), w.path("floor", "head"), make([]byte, 60), 0o644))
}

// memoryRows measure the memory of a step, in MB. The system's figure for a child is the maximum of its peak
// and its children's, so the agent is measured separately.
func (w *world) memoryRows() []row {
	within := func(name string, measure side, most float64) row {
		r := versus("memory/"+name, measure, 1, fmt.Sprint(most, " MB"), constant(most))
		r.unit = "MB"
		return r
	}
	peak := func(name string, measure side) row { return within(name, measure, 25) }
	return []row{
		peak("step", w.stepPeak(w.chain, 10)),
		peak("step at 10,000 steps", w.stepPeak(w.chain, 10_000)),
		peak("step among 100,000 threads", w.stepPeak(w.among, 100_000)),
		peak("agent on the kit", w.agentPeak),
		within("uwf and the agent of a step together", func(b testing.TB) float64 { return w.stepPeak(w.chain, 10)(b) + w.agentPeak(b) }, 20),
		within("push of 10,000 steps", w.pushPeak(10_000), 60),
		within("pull of 10,000 steps", w.pullPeak(10_000), 60),
		w.webPeak(),
	}
}

// pushPeak measures the larger peak of the two processes of a push to an empty directory.
func (w *world) pushPeak(steps int) side {
	return func(b testing.TB) float64 {
		p, to := w.chain(b, steps), w.path(fmt.Sprint("pushed-", w.fresh(1)))
		run(b, w.command(b, p.home, w.helper(b, "peak"), w.path("peak"), w.program("uwf"), "--quiet", "push", p.thread, to))
		return w.noted(b)
	}
}

// pullPeak measures the larger peak of the two processes of a pull into an empty home.
func (w *world) pullPeak(steps int) side {
	return func(b testing.TB) float64 {
		p, from := w.pushed(b, steps)
		home := w.path(fmt.Sprint("pulled-", w.fresh(1)))
		run(b, w.command(b, home, w.helper(b, "peak"), w.path("peak"), w.program("uwf"), "--quiet", "pull", p.thread, from))
		return w.noted(b)
	}
}

// stepPeak measures the larger peak of the two processes of a step.
func (w *world) stepPeak(of func(testing.TB, int) place, n int) side {
	return func(b testing.TB) float64 {
		p := of(b, n)
		run(b, w.command(b, p.home, w.helper(b, "peak"), w.path("peak"), w.program("uwf"), "--quiet", "thread", "step", p.thread, "--agent", w.agent(b)))
		return w.noted(b)
	}
}

// agentPeak measures the peak of a step's agent.
func (w *world) agentPeak(b testing.TB) float64 {
	p := w.chain(b, 10)
	w.uwf(b, p.home, "thread", "step", p.thread, "--agent", w.helper(b, "peak")+" "+w.path("peak")+" "+w.agent(b))
	return w.noted(b)
}

// noted reads the helper's output, in MB.
func (w *world) noted(b testing.TB) float64 {
	text, err := os.ReadFile(w.path("peak"))
	require.NoError(b, err)
	bytes, err := strconv.ParseFloat(string(text), 64)
	require.NoError(b, err)
	return bytes / (1 << 20)
}

// startRows measure the start of a program.
func (w *world) startRows() []row {
	rows := []row{w.starts("uwf", 7, "--help"), w.starts("uwf", 7, "__complete", "thread", ""), w.starts("uwf", 4, "--version")}
	for _, a := range protocol.Adapters() {
		if _, err := os.Stat(w.program(a.Name)); err == nil {
			rows = append(rows, w.starts(a.Name, 2.5, "--version"))
		}
	}
	return rows
}

// starts is a row about a program that does almost nothing.
func (w *world) starts(name string, promise float64, args ...string) row {
	start := func(b testing.TB) { run(b, w.command(b, w.path("nobody"), w.program(name), args...)) }
	return versus("start/"+strings.TrimSpace(name+" "+strings.Join(args, " ")), timed(start), promise, "1 empty program", timed(w.empty))
}

// readingRows measure the cost of reading threads, for any length and number.
func (w *world) readingRows() []row {
	on := func(of func(testing.TB, int) place, n int, args ...string) side {
		return timed(func(b testing.TB) {
			p := of(b, n)
			w.uwf(b, p.home, append(slices.Clone(args), p.thread)...)
		})
	}
	start := func(n int) side { return timed(func(b testing.TB) { w.start(b, w.among(b, n).home) }) }
	list := timed(func(b testing.TB) { w.uwf(b, w.crowd(b, 10_000).home, "thread", "list") })
	return []row{
		versus("reading/thread show", on(w.chain, 10, "thread", "show"), 7, "1 empty program", timed(w.empty)),
		versus("reading/thread show at 10,000 steps", on(w.chain, 10_000, "thread", "show"), 1.3, "at 10 steps", on(w.chain, 10, "thread", "show")),
		versus("reading/thread read at 10,000 steps", on(w.chain, 10_000, "thread", "read", "--quota", "4000"), 1.3, "at 10 steps", on(w.chain, 10, "thread", "read", "--quota", "4000")),
		versus("reading/thread start among 100,000", start(100_000), 4, "among 1", start(1)),
		versus("reading/thread list of 10,000", list, 3, "reading their 10,000 heads", timed(w.readHeads)),
		versus("reading/first byte of uwf web among 10,000", w.firstByte(10_000), 1, "50 ms", constant(50)),
	}
}

// listRows measure lists of many threads, each with its own start and head.
func (w *world) listRows() (rows []row) {
	add := func(n int, most float64) {
		on := func(name string, measure func(b testing.TB)) {
			rows = append(rows, versus(fmt.Sprintf("lists/%s, %d threads", name, n), timed(measure), 1, fmt.Sprint(most, " ms"), constant(most)))
		}
		for _, args := range [][]string{{"thread", "list"}, {"inbox"}, {"stats"}} {
			on(strings.Join(args, " "), func(b testing.TB) { w.uwf(b, w.crowd(b, n).home, args...) })
		}
		on("inbox page of uwf web", func(b testing.TB) { w.web(b, w.crowd(b, n)).read(b, "") })
	}
	if add(10_000, 60); w.full {
		add(100_000, 500)
	}
	return rows
}

// readHeads starts a program and reads the heads of 10,000 threads.
func (w *world) readHeads(b testing.TB) {
	p := w.crowd(b, 10_000)
	w.empty(b)
	s, err := fsstore.Open(b.Context(), filepath.Join(p.home, "cas"), fsstore.Options{Home: p.home})
	require.NoError(b, err)
	heads, err := os.ReadFile(filepath.Join(p.home, "threads.yaml"))
	require.NoError(b, err)
	for line := range strings.Lines(string(heads)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		_, head, _ := strings.Cut(strings.TrimSpace(line), ": ")
		_, err := s.Get(b.Context(), cas.Hash(head))
		require.NoError(b, err)
	}
}

// storeRows check that reading a node costs the same for any number of nodes.
func (w *world) storeRows() []row {
	sizes := []int{1_000, 100_000}
	if w.full {
		sizes = append(sizes, 1_000_000)
	}
	return []row{grows("store/ocas get", 0.05, sizes, func(n int) side { return timed(w.get(n)) })}
}

// get reads a node of a store of n nodes without a home.
func (w *world) get(n int) func(testing.TB) {
	return func(b testing.TB) {
		dir := w.path(fmt.Sprint("store-", n))
		fixture(w, dir, func() bool { fill(b, dir, n); return true })
		payload, err := cas.Encode(text(0))
		require.NoError(b, err)
		hash := cas.XXH3.Sum(cas.NewKinds(cas.XXH3).Hash(protocol.KindText), payload)
		w.uwf(b, w.path("nobody"), "--store", dir, "cas", "get", string(hash))
	}
}

// loadRows measure steps made by some processes at once, each for as many of the threads.
func (w *world) loadRows() []row {
	few := 40
	if w.full {
		few = 200
	}
	const many = 32
	return []row{w.load(few, 5, 2, 4), w.load(many, 1, many, 3)}
}

// load measures steps of some threads, made by n processes at once.
func (w *world) load(threads, stepsEach, n int, promise float64) row {
	all := threads * stepsEach
	perStep := func(do func(b testing.TB) func(i int) error) side {
		return func(b testing.TB) float64 {
			next := do(b)
			return timed(func(b testing.TB) { require.NoError(b, atOnce(n, all, next)) })(b) / float64(all)
		}
	}
	// A thread's steps are sequential: i cycles through the threads of one process.
	steps := func(b testing.TB) func(i int) error {
		home, ids, agent := w.path(fmt.Sprint("load-", w.fresh(1))), make([]string, threads), w.agent(b)
		for i := range ids {
			ids[i] = w.start(b, home)
		}
		return func(i int) error {
			_, err := output(w.command(b, home, w.program("uwf"), "--quiet", "thread", "step", ids[i%threads], "--agent", agent))
			return err
		}
	}
	floor := func(b testing.TB) func(i int) error {
		empty := w.helper(b, "empty")
		return func(int) error {
			return errors.Join(w.flushed(12), exec.Command(empty).Run(), exec.Command(empty).Run())
		}
	}
	r := versus(fmt.Sprintf("load/%d threads, %d steps each, %d at once", threads, stepsEach, n), perStep(steps), promise,
		fmt.Sprintf(theFloor+", %d at once", n), perStep(floor))
	r.unit = "ms/step"
	return r
}

// atOnce does all things in n goroutines until one fails.
func atOnce(n, all int, do func(i int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for worker := range errs {
		group.Go(func() {
			for i := worker; i < all && errs[worker] == nil; i += n {
				errs[worker] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// TestRows measures some cheap rows once, with programs built from the tree. It does not check the costs.
func TestRows(t *testing.T) {
	t.Parallel()
	w := &world{dir: t.TempDir(), bin: t.TempDir(), made: map[string]any{}}
	for _, name := range []string{"uwf", "uwf-mock"} {
		build(t, w.program(name), "cmd/"+name)
	}
	measured := 0
	for _, r := range w.rows() {
		if slices.Contains([]string{"step/no-op agent", "start/uwf --version", "reading/thread show", "memory/agent on the kit"}, r.name) {
			r.round(t, 0)
			measured++
		}
	}
	require.Equal(t, 4, measured)
}
