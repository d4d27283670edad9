//go:build unix

package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// commands returns a world whose workflow has one role, a shell script, and a thread in w.dir.
func commands(t *testing.T, script string, change ...func(*protocol.Role)) (*world, string) {
	t.Helper()
	w := newWorld(t, "")
	role := protocol.Role{Description: "Runs.", Capabilities: []string{}, Run: []string{"sh", "-c", script, "sh", "{{{$prompt}}}"}}
	for _, c := range change {
		c(&role)
	}
	edge := map[string]protocol.Edge{"passed": {Role: "$END"}, "failed": {Role: "$SUSPEND", Prompt: "Repair it."}}
	w.workflow = w.put(protocol.Workflow{
		Name: "cmd", Roles: map[string]protocol.Role{"run": role},
		Graph: map[string]protocol.GraphNode{"$START": {Edges: map[string]protocol.Edge{"_": {Role: "run"}}}, "run": {Edges: edge}},
	}, moderator.CommandSchema())
	return w, w.start()
}

// lines returns the lines of a file in the thread's directory.
func (w *world) lines(name string) []string {
	data, _ := os.ReadFile(filepath.Join(w.dir, name)) // a missing file has no lines
	return strings.Fields(string(data))
}

func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && syscall.Kill(n, 0) == nil
}

func TestCommandThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	elsewhere := ""
	if runtime.GOOS == "linux" {
		elsewhere = `setsid sh -c 'echo $$ >elsewhere; exec sleep 1000' & while ! [ -s elsewhere ]; do :; done; `
	}
	w, id := commands(t, elsewhere+`sleep 1000 & echo $! >child; trap "" TERM; echo $$ >self; wait; wait`, func(r *protocol.Role) { r.TimeoutMs = 300 })
	w.Grace = 50 * time.Millisecond
	_, err := w.Step(t.Context(), id, StepOptions{})
	requireCode(t, err, protocol.CodeTimeout)
	for _, name := range []string{"child", "self", "elsewhere"} {
		for _, pid := range w.lines(name) {
			w.eventually("its processes end", func() bool { return !alive(pid) })
		}
	}
	require.Equal(t, protocol.StatusError, w.show(id).Status)
}

// Processes left behind by a command are killed, even in their own session.
func TestCommandThatForksDaemons(t *testing.T) {
	t.Parallel()
	script := `sleep 1000 & echo $! >daemons`
	if runtime.GOOS == "linux" {
		script += `; setsid sh -c 'echo $$ >>daemons; exec sleep 1000' & while [ $(wc -l <daemons) -lt 2 ]; do :; done`
	}
	w, id := commands(t, script)
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusCompleted, out.Status)
	for _, pid := range w.lines("daemons") {
		w.eventually("it ends", func() bool { return !alive(pid) })
	}
}

// With 100 MB of output, the detail has all of it, the output its end, and memory stays bounded.
func TestCommandThatPrintsMuch(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `head -c 104857600 /dev/zero | tr '\0' x; printf 'ä€end'`)
	out := w.mustStep(id, StepOptions{})
	output := out.Output.(map[string]any)
	require.Equal(t, true, output["truncated"])
	text := output["output"].(string)
	require.LessOrEqual(t, len(text), moderator.CommandOutput)
	require.True(t, strings.HasSuffix(text, "xä€end"))
	s := w.readStep(protocol.Hash(out.StepHash))
	d, err := cas.Read[protocol.Detail](t.Context(), w.Reader.Store, s.Detail)
	require.NoError(t, err)
	size := 0
	for _, h := range d.Turns {
		turn, err := cas.Read[protocol.Turn](t.Context(), w.Reader.Store, h)
		require.NoError(t, err)
		if turn.Role == protocol.TurnTool {
			size += len(turn.Content)
			require.LessOrEqual(t, len(turn.Content), oscommand.OutputPiece)
		}
	}
	require.Equal(t, 100<<20+len("ä€end"), size)
}

// A command that prints forever is killed, its step fails, and the error states the reason.
func TestCommandThatPrintsForEver(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `yes >&2`)
	w.Run = func(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
		inv.MaxPrinted = 1 << 20
		return agentproc.Run(ctx, inv)
	}
	_, err := w.Step(t.Context(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	require.Equal(t, protocol.StatusError, w.show(id).Status)
}

// Watchers see the last line of a running command's output, without keys.
func TestWhatACommandPrintsIsSeen(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `echo one; printf 'two sk-test-key-1234567890 \033[2J\n'; until test -e go; do :; done`)
	require.NoError(t, os.WriteFile(w.Reader.Dirs.DotEnv(), []byte("MY_API_KEY=sk-test-key-1234567890\n"), 0o600))
	shown := make(chan string, 100)
	w.Turns, w.Events = true, func(ev Event) {
		if ev.Kind == Writing {
			shown <- ev.Turn.Content
		}
	}
	done := make(chan error, 1)
	go func() {
		_, err := w.Step(context.Background(), id, StepOptions{})
		done <- err
	}()
	const want = "two [hidden key]"
	for line := range shown {
		if line == want {
			break
		}
	}
	f, err := w.Reader.Flight(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, f.Printed)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600))
	require.NoError(t, <-done)
}

func TestWholeRunes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"a€": 4, "a\xe2\x82": 1, "a\xe2": 1, "a\xff": 2, "\x80\x80\x80\x80": 4, "": 0, "a": 1, "aä": 3} {
		require.Equal(t, want, oscommand.WholeRunes([]byte(text)), "%q", text)
	}
}

// A command may run twice if its engine is killed, but a finished step is adopted.
func TestCommandOfAKilledEngine(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `echo ran >>runs; echo '{"stepHash":"0123456789ABC"}'`)
	a, ran := w.plainRunOf(id) // killed before it made the step: the exit status is lost

	var warned []string
	w.onWarning(func(text string) { warned = append(warned, text) })
	h, err := w.lock(t.Context(), id)
	require.NoError(t, err)
	a.locked = h
	require.NoError(t, a.dir.Write(a.record))
	result, err := a.ofCommand(t.Context(), ran)
	require.NoError(t, err)
	h.release() // killed before it moved the head
	out := w.mustStep(id, StepOptions{})
	require.True(t, out.Adopted)
	require.Equal(t, result.StepHash, protocol.Hash(out.StepHash))
	require.Equal(t, []string{"ran"}, w.lines("runs"))
	require.Empty(t, warned)

	id = w.start()
	w.plainRunOf(id)
	out = w.mustStep(id, StepOptions{})
	require.False(t, out.Adopted)
	require.Equal(t, []string{"ran", "ran", "ran"}, w.lines("runs"), "a word that looks like a result is none")
	require.Len(t, warned, 1)
	prosetest.Text(t, warned[0])
}

// plainRunOf runs only the command of a thread's next step.
func (w *world) plainRunOf(id string) (*attempt, agentproc.Outcome) {
	ctx := context.Background()
	h, err := w.lock(ctx, id)
	require.NoError(w.t, err)
	defer h.release()
	pos, err := w.at(ctx, h)
	require.NoError(w.t, err)
	task, err := w.graphTask(ctx, pos, pos.Next)
	require.NoError(w.t, err)
	a := w.newAttempt(h, pos, task)
	a.cmd, err = a.e.Casting().Player(ctx, agentselect.Choices{}, pos.Workflow, task.role, task.command, nil)
	require.NoError(w.t, err)
	a.task.cwd = w.dir
	a.record = a.newRecord()
	lock, err := a.prepare(ctx)
	require.NoError(w.t, err)
	ran, err := a.invoke(ctx, lock)
	require.NoError(w.t, err)
	require.NoError(w.t, lock.Unlock())
	a.record.Status = rundir.Running
	return a, ran
}

// A command gets an agent's environment without secrets, and without the variables with which it could submit
// the step.
func TestEnvironmentOfACommand(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `env`)
	w.Reader.Env.Environ = append(w.Reader.Env.Environ, "MY_API_KEY=abcdefgh12345678", "PLAIN=yes", "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	out := w.mustStep(id, StepOptions{})
	text := "\n" + out.Output.(map[string]any)["output"].(string)
	for _, want := range []string{"\nPLAIN=yes\n", "\nUWF_THREAD=" + id + "\n", "\nUWF_ROLE=run\n", "\nPWD=" + w.dir + "\n", "\nUWF_HOME="} {
		require.Contains(t, text, want)
	}
	for _, without := range []string{"abcdefgh12345678", "UWF_HEAD", "UWF_RUN_DIR", "UWF_PROMPT_REF", "UWF_LIMIT_BASE", filepath.Join(w.dir, "bin")} {
		require.NotContains(t, text, without)
	}
}

// Answering the suspension after a command, or poking it, runs the unchanged command again.
func TestCommandOnceMore(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `echo "$1" >>runs; test -e repaired`)
	out := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, out.Status)
	_, err := w.Poke(t.Context(), id, "again", StepOptions{})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "repaired"), nil, 0o600))
	out, err = w.Resume(t.Context(), id, "it is", StepOptions{})
	require.NoError(t, err)
	require.Equal(t, protocol.StatusCompleted, out.Status)
	require.Equal(t, []string{"the", "task", "the", "task", "the", "task"}, w.lines("runs"))
	th, err := thread.Open(t.Context(), w.Reader.Store, out.Head)
	require.NoError(t, err)
	require.Equal(t, 2, th.Len())
}

// If a person stops a command, its output isn't used as an answer.
func TestStoppedCommandGivesNoAnswer(t *testing.T) {
	t.Parallel()
	w, id := commands(t, `echo $$ >self; exec sleep 1000`)
	done := make(chan error, 1)
	go func() {
		_, err := w.Step(context.Background(), id, StepOptions{})
		done <- err
	}()
	w.eventually("it runs", func() bool { return len(w.lines("self")) == 1 && w.show(id).Status == protocol.StatusRunning })
	stopped, err := w.Stop(t.Context(), id)
	require.NoError(t, err)
	require.True(t, stopped)
	requireCode(t, <-done, protocol.CodeTerminated)
	require.Nil(t, w.show(id).Output)
}

// Output is stored and shown without the keys that uwf knows, whatever the command's exit status.
func TestWhatACommandPrintsHoldsNoKeys(t *testing.T) {
	t.Parallel()
	const key = "sk-Zq8vT3nWm5Lr9Xb2"
	nowhere := func(w *world, text string) {
		require.NotContains(t, text, key)
		require.NoError(t, filepath.WalkDir(w.Reader.Dirs.Home, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || path == w.Reader.Dirs.DotEnv() {
				return err
			}
			data, err := os.ReadFile(path)
			require.NotContains(t, string(data), key, path)
			return err
		}))
	}
	with := func(script string, change ...func(*protocol.Role)) (*world, string) {
		w, id := commands(t, script, change...)
		require.NoError(t, os.WriteFile(w.Reader.Dirs.DotEnv(), []byte("SOME_KEY="+key+"\n"), 0o600))
		return w, id
	}
	w, id := with(`cat "$UWF_HOME/.env"`)
	out := w.mustStep(id, StepOptions{})
	text, err := json.Marshal(w.readStep(out.Head))
	require.NoError(t, err)
	nowhere(w, string(text))

	w, id = with(`cat "$UWF_HOME/.env" >&2; cat "$UWF_HOME/.env"; kill -9 $$`)
	_, err = w.Step(t.Context(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	nowhere(w, err.Error())

	w, id = with(`kill -9 $$`, func(r *protocol.Role) { r.Run = []string{"/no/such/" + key} })
	_, err = w.Step(t.Context(), id, StepOptions{})
	require.Error(t, err)
	record, readErr := os.ReadFile(filepath.Join(w.Reader.Dirs.Run(id), "run.json"))
	require.NoError(t, readErr)
	var kept struct{ Error struct{ Message string } }
	require.NoError(t, json.Unmarshal(record, &kept))
	require.Contains(t, kept.Error.Message, "[hidden key]")
	require.NotContains(t, kept.Error.Message, key)

	w, id = with(`cat "$UWF_HOME/.env" >&2; echo no data`, func(r *protocol.Role) { r.Parse = protocol.ParseJSON })
	_, err = w.Step(t.Context(), id, StepOptions{})
	requireCode(t, err, protocol.CodeAgent)
	nowhere(w, err.Error())
}
