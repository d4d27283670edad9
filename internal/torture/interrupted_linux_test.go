package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/torture/trace"
)

// scene is an interrupted request. In its commands, $T is the thread and $A its child a.
type scene struct {
	name     string
	of       string // the thread of the run: $T or $A
	workflow string
	before   []string // commands to run first
	cut      string   // the command to interrupt
	moments  []moment
	kind     sceneKind
}

type sceneKind int

const (
	suspends sceneKind = 1 << iota // the last agent before it asks a person
	replaces                       // it removes steps from the chain
	undoes                         // it leaves an undone step, so run-due skips the thread
)

// moment determines when uwf is killed: by its agent, which performs act, or at a system call.
type moment struct {
	name  string
	act   string
	under string // before the first call that changes this path
}

// moments returns the moments of a request. Alive: the agent is running; after: it has finished; lost: it was
// killed as well.
func moments() []moment {
	return []moment{{name: "alive", act: "alive"}, {name: "after", act: "after"}, {name: "lost", act: "lost"}}
}

func scenes() []scene {
	at := func(names ...string) (all []moment) {
		for _, name := range names {
			all = append(all, moment{name: "at " + name, under: name})
		}
		return all
	}
	family := []string{"thread step $T -c 2", "thread step $A", "thread step $T/b"}
	line := []string{"thread step $T", "thread step $T", "thread undo $T"}
	moves := at("repo", "home/facts.jsonl", "home/threads.yaml")
	return []scene{
		{"step", "$T", "line", line[:1], "thread step $T", moments(), 0},
		{"resume", "$T", "line", line[:2], "thread resume $T -p go -c 1", moments(), suspends},
		{"poke", "$T", "line", line[:2], "thread retry $T -p other", moments(), replaces},
		{"poke a question", "$T", "line", line[:2], "thread retry $T -p other", moments(), suspends | replaces},
		{"poke earlier", "$T", "line", line[:2], "thread retry $T@1 -p other", moments(), replaces | undoes},
		{"undo", "$T", "line", line[:2], "thread undo $T", moves, replaces},
		{"redo", "$T", "line", line, "thread redo $T", at("repo", "home/threads.yaml"), replaces | undoes},
		{"answer", "$T", "line", line[:2], "thread answer $T --set $status=ok", at("home/cas", "home/threads.yaml"), 0},
		{"poke parent", "$T", "family", family[:2], "thread retry $T -p other", moments(), replaces},
		{"step child", "$A", "family", family[:1], "thread step $T/a", moments(), 0},
		{"poke child", "$A", "family", family, "thread retry $A -p other", moments(), replaces},
		{"retry child", "$T", "family", []string{family[0], family[2]}, "thread retry $T/a", moves[1:], replaces},
		{"join", "$T", "family", family, "thread step $T", at("home/cas", "repo", "home/threads.yaml"), 0},
	}
}

// next is the following request.
type next struct {
	args   string
	undoes bool // it can remove finished steps from the chain
	ends   bool // it discards a pending result
	whole  bool // it runs children, so it cannot be used while a child's agent is held
	leaves bool // it leaves the thread's files to the next request
}

// nexts returns the possible following requests, for a linear thread and for one with children.
func nexts(workflow string) []next {
	all := []next{
		{args: "thread step $T"},
		{args: "thread resume $T", whole: true},
		{args: "thread retry $T -p other", undoes: true},
		{args: "thread retry $T@1 -p other", undoes: true},
		{args: "thread undo $T", undoes: true},
		{args: "thread redo $T"},
		{args: "thread stop $T", leaves: true},
		{args: "thread kill $T", ends: true, leaves: true},
		{args: "thread fork $T@1", leaves: true},
		{args: "run-due"},
	}
	if workflow == "line" {
		return append(all, []next{
			{args: "thread resume $T -p go"},
			{args: "thread answer $T --set $status=ok"},
			{args: "thread retry $T -p third", undoes: true},
			{args: "thread step $T --discard-result", ends: true},
		}...)
	}
	return append(all, []next{
		{args: "thread retry $T/a", undoes: true, ends: true, whole: true},
		{args: "thread step $T/a", leaves: true},
		{args: "thread retry $T/a -p third", undoes: true, leaves: true},
		{args: "thread resume $A -p go", leaves: true},
		{args: "thread retry $A -p other", undoes: true, leaves: true},
		{args: "thread undo $A", undoes: true, leaves: true},
		{args: "thread kill $A", ends: true, leaves: true},
		{args: "thread fork $A@-1", leaves: true},
	}...)
}

const configOfRequests = `agents: { me: { command: sh, args: [%q], retry: { attempts: 1 } } }
defaultAgent: me
`

// interrupted is a world in which a request was interrupted.
type interrupted struct {
	*world
	scene
	moment
	thread, child string
	old           []int // finished before the interrupted request
	late          int   // the result of that request's agent, or 0
	joined        []int // the children's results
}

// TestNothingIsLostAfterAnInterruption interrupts each request, before and after the end of its agent, and
// follows it with each other request; without the tag instruments, only every third combination. Everything
// finished must be in the chain or still pending, no useless work must be paid for, and the files must be
// those of the head.
func TestNothingIsLostAfterAnInterruption(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	places := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i, s := range scenes() {
		for j, m := range s.moments {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				t.Run(s.name+" "+m.name, func(t *testing.T) {
					w := newInterrupted(t, tools, s, m)
					for k, n := range nexts(s.workflow) {
						if (allRequests || (i+j+k)%3 == 0) && (m.act != "alive" || !n.whole) {
							t.Run(n.args, func(t *testing.T) { w.followed(t, n) })
						}
					}
				})
			})
		}
	}
	all.Wait()
}

// newInterrupted plays a scene until its request is interrupted.
func newInterrupted(t *testing.T, tools tools, s scene, m moment) *interrupted {
	plain, err := newWorld(filepath.Join(t.TempDir(), "w"), tools)
	require.NoError(t, err)
	w := &interrupted{world: plain, scene: s, moment: m}
	w.cwd = w.path("repo")
	w.env = append(w.env, "REQUESTS="+w.dir, "HOME="+w.path("user"))
	w.env = append(w.env, "GIT_CONFIG_GLOBAL="+w.path("gitconfig"), "GIT_CONFIG_NOSYSTEM=1")
	require.NoError(t, os.CopyFS(w.dir, os.DirFS("testdata/interrupted")))
	for name, text := range map[string]string{
		"act": "done\n", "paid/x": "", "user/x": "",
		"home/config.yaml": fmt.Sprintf(configOfRequests, w.path("agent.sh")),
	} {
		require.NoError(t, write(w.path(name), []byte(text)))
	}
	require.NoError(t, syscall.Mkfifo(w.path("gate"), 0o600))
	// Power failures are not simulated, so nothing needs flushing.
	w.sh(t, `git init -q -b main; git add a; git commit -q -m first
"$0" --quiet cas init
sed -i 's/"flush":"auto"/"flush":"none"/' "$UWF_HOME/cas/format.json"`, filepath.Join(w.bin, "uwf"))
	var out struct{ Thread string }
	require.NoError(t, w.must(t.Context(), &out, "thread", "start", w.path(s.workflow+".yaml"), "-p", "task"))
	w.thread = out.Thread
	for i, line := range s.before {
		if s.kind&suspends != 0 && i == len(s.before)-1 { // its last step asks a person
			require.NoError(t, write(w.path("act"), []byte("asks\n")))
		}
		require.NoError(t, w.must(t.Context(), nil, w.words(line)...))
		if i == 0 && s.workflow == "family" {
			w.child = w.shown(t, w.thread).Children[0].Thread
		}
	}
	require.NoError(t, write(w.path("act"), []byte("done\n")))
	w.old = w.finished(t)
	if m.act != "alive" { // a living one is interrupted each time
		w.cutOff(t)
		w.late = w.lateOne(t)
	}
	w.sh(t, `mkdir "$0.was" && cp -a "$0/." "$0.was"`, w.dir)
	return w
}

// sh runs a script in the repository.
func (w *interrupted) sh(t *testing.T, script string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", script}, args...)...)
	cmd.Dir, cmd.Env = w.cwd, w.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", script, out)
}

func (w *interrupted) words(line string) []string {
	return strings.Fields(strings.NewReplacer("$T", w.thread, "$A", w.child).Replace(line))
}

// cutOff runs and interrupts the request.
func (w *interrupted) cutOff(t *testing.T) {
	t.Helper()
	if w.under != "" {
		cmd := w.command(t.Context(), w.words(w.cut)...)
		out, err := trace.Run(cmd, trace.Plan{Under: w.path(w.under), FilesOnly: true, At: 1, Fault: trace.KillAll})
		if errors.Is(err, trace.ErrUnsupported) {
			t.Skip(err)
		}
		require.NoError(t, err)
		require.True(t, out.WasHit, "it is not cut off")
		return
	}
	require.NoError(t, write(w.path("act"), []byte(w.act+"\n")))
	e, err := w.uwf(t.Context(), w.words(w.cut)...)
	require.NoError(t, err)
	require.Equal(t, "killed", e.Signal, "%s", e)
	require.NoError(t, write(w.path("act"), []byte("done\n")))
	if w.act != "alive" {
		w.idle(t)
	}
}

// idle waits until the agent has ended.
func (w *interrupted) idle(t *testing.T) {
	t.Helper()
	_, err := w.uwf(t.Context(), w.words("thread wait "+w.of+" --timeout 20s")...)
	require.NoError(t, err)
}

// finished returns the runs of agents that have submitted their result, or 0 for one that has only started.
func (w *interrupted) finished(t *testing.T) (all []int) {
	t.Helper()
	for n := 1; n <= w.paid(t); n++ {
		if _, err := os.Stat(w.path(fmt.Sprintf("paid/%d/finished", n))); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// paid returns how many agents were started.
func (w *interrupted) paid(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob(w.path("paid/*/thread"))
	require.NoError(t, err)
	return len(all)
}

// lateOne returns the result of the request's agent.
func (w *interrupted) lateOne(t *testing.T) int {
	if all := w.finished(t); len(all) > len(w.old) {
		return all[len(w.old)]
	}
	return 0
}

// standing is a thread's state as printed by uwf.
type standing struct {
	Status   string
	Pending  bool
	Children []child
}

type child struct{ Key, Thread, Status string }

func (w *interrupted) shown(t *testing.T, thread string) (s standing) {
	t.Helper()
	require.NoError(t, w.must(t.Context(), &s, "thread", "show", thread))
	return s
}

// made returns the runs whose results are in a thread: those of its steps, and of its joined children.
func (w *interrupted) made(t *testing.T, thread string) (all []int) {
	t.Helper()
	var listed struct {
		Steps []struct {
			Output struct {
				N   int
				All []int
			}
		}
	}
	e := w.bounded(t, "thread steps "+thread)
	if e.Code == exitMissing {
		return nil // a child that has not started
	}
	require.NoError(t, json.Unmarshal(e.Stdout, &listed), "%s", e)
	for _, s := range listed.Steps {
		if len(s.Output.All) > 0 { // only the latest result of each child, but its earlier steps have also written files
			w.joined = s.Output.All
			if own := w.made(t, w.child); slices.ContainsFunc(own, func(n int) bool { return slices.Contains(w.joined, n) }) {
				all = append(all, own...)
				require.Contains(t, w.joined, own[len(own)-1], "a newer answer of a child is dropped")
			}
		}
		all = append(all, s.Output.All...)
		if s.Output.N > 0 {
			all = append(all, s.Output.N)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// followed runs the following request and then a step.
func (w *interrupted) followed(t *testing.T, n next) {
	w.sh(t, `cd / && rm -rf "$0" && cp -a "$0.was" "$0"`, w.dir)
	open := func() {}
	if w.act == "alive" {
		w.cutOff(t)
		w.late = 0
		gate, err := os.OpenFile(w.path("gate"), os.O_RDWR, 0)
		require.NoError(t, err)
		defer gate.Close()
		open = sync.OnceFunc(func() { _, err = gate.WriteString("\n"); require.NoError(t, err) })
		defer open() // lets the agent end even if the test fails
	}
	w.joined = nil
	begun := w.paid(t)
	e := w.bounded(t, n.args)
	if w.act == "alive" {
		if w.of == "$T" || strings.Contains(n.args, "$A") || strings.Contains(n.args, "$T/a") {
			require.Equal(t, begun, w.paid(t), "an agent is paid beside one that is at work: %s", e)
		}
		open()
		w.idle(t)
		w.late = w.lateOne(t)
	}
	leaves := n.leaves || w.kind&undoes != 0 && n.args == "run-due"
	if e.Code == 0 && !leaves && !w.shown(t, w.thread).Pending {
		w.sameFiles(t, w.made(t, w.thread), e)
	}
	if w.of == "$A" {
		w.bounded(t, "thread step $A")
	}
	last := w.bounded(t, "thread step $T")
	s, made := w.shown(t, w.thread), w.made(t, w.thread)
	if s.Status != "cancelled" {
		require.True(t, last.Code == 0 || s.Status == "completed", "the thread is stuck: %s\n%s", e, last)
		w.sameFiles(t, made, e)
	}
	w.kept(t, n, s, made, e)
	if len(w.joined) > 0 && n.args != "thread kill $A" {
		require.Len(t, w.joined, 2, "a child counts as failed: %s", e)
	}
}

// bounded runs a command that must end in any way.
func (w *interrupted) bounded(t *testing.T, line string) ended {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	e, err := w.uwf(ctx, w.words(line)...)
	require.NoError(t, err)
	return e
}

// kept checks that finished work is in the right place.
func (w *interrupted) kept(t *testing.T, n next, s standing, made []int, e ended) {
	t.Helper()
	for _, run := range w.finished(t) {
		switch {
		case slices.Contains(made, run), w.childHas(t, s, run):
		case slices.Contains(w.old, run) && (w.kind&replaces != 0 || n.undoes || n.ends):
		case run == w.late && n.ends:
		case run == w.late && w.of == "$A" && n.undoes && w.shown(t, w.child).Pending:
		case run == w.late && w.of == "$A" && n.undoes && slices.Contains(w.made(t, w.child), run):
		default:
			t.Errorf("run %d is finished, and in no chain: %v; before: %v, late: %d\n%s", run, made, w.old, w.late, e)
		}
	}
}

// childHas reports whether the thread is still waiting for a child with a finished run.
func (w *interrupted) childHas(t *testing.T, s standing, run int) bool {
	return slices.ContainsFunc(s.Children, func(c child) bool { return slices.Contains(w.made(t, c.Thread), run) })
}

// sameFiles checks that the files match the head.
func (w *interrupted) sameFiles(t *testing.T, made []int, e ended) {
	t.Helper()
	entries, err := os.ReadDir(w.cwd)
	require.NoError(t, err)
	files := []int{}
	for _, entry := range entries {
		if n, err := strconv.Atoi(strings.TrimPrefix(entry.Name(), "u")); err == nil {
			files = append(files, n)
		}
	}
	slices.Sort(files)
	if !slices.Equal(made, files) {
		t.Errorf("the files are of %v, the steps of %v\n%s", files, made, e)
	}
}
