//go:build unix

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/runfiles"
)

// lie runs a shell script as the agent of a step.
func (w *world) lie(id, script string) error {
	w.t.Helper()
	path := filepath.Join(w.dir, "liar.sh")
	require.NoError(w.t, os.WriteFile(path, []byte(script+"\n"), 0o700))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := w.Step(ctx, id, StepOptions{Agent: "sh " + path})
	require.NoError(w.t, ctx.Err(), "it hangs")
	return err
}

// Whatever an agent puts into its run directory, or in its place, only that step fails.
func TestRunDirectoryThatAnAgentHasWedged(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"a link to the home":               `rm -r "$UWF_RUN_DIR"; ln -s "$UWF_HOME" "$UWF_RUN_DIR"; exit 1`,
		"a link to itself":                 `rm -r "$UWF_RUN_DIR"; ln -s "$UWF_RUN_DIR" "$UWF_RUN_DIR"; exit 1`,
		"a link to nowhere":                `rm -r "$UWF_RUN_DIR"; ln -s /no/such/place "$UWF_RUN_DIR"; exit 1`,
		"a file":                           `rm -r "$UWF_RUN_DIR"; echo x > "$UWF_RUN_DIR"; exit 1`,
		"a pipe":                           `rm -r "$UWF_RUN_DIR"; mkfifo "$UWF_RUN_DIR"; exit 1`,
		"nothing":                          `rm -r "$UWF_RUN_DIR"; exit 1`,
		"links in it":                      `cd "$UWF_RUN_DIR"; for f in stdout stderr run.json stop totals.json agent.lock; do rm -f $f; ln -s "$UWF_HOME/threads.yaml" $f; done; exit 1`,
		"links to something endless in it": `cd "$UWF_RUN_DIR"; for f in stdout stderr run.json stop totals.json agent.lock; do rm -f $f; ln -s /dev/zero $f; done; exit 1`,
		"pipes in it":                      `cd "$UWF_RUN_DIR"; for f in stdout stderr run.json stop totals.json agent.lock; do rm -f $f; mkfifo $f; done; exit 1`,
		"directories in it":                `cd "$UWF_RUN_DIR"; for f in stdout stderr run.json stop totals.json agent.lock; do rm -f $f; mkdir -p $f/x; done; exit 1`,
		"files without end in it":          `cd "$UWF_RUN_DIR"; for f in stdout stderr run.json stop totals.json; do truncate -s 200G $f; done; exit 1`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "again")
			var warnings []string
			w.onWarning(func(text string) { warnings = append(warnings, text) })
			keep := filepath.Join(w.Reader.Dirs.Home, "keep.yaml")
			require.NoError(t, os.WriteFile(keep, nil, 0o600))
			other, id := w.start(), w.start()
			w.mustStep(id, StepOptions{Agent: "fake"})
			for range 3 {
				head := w.head(id)
				require.Error(t, w.lie(id, script))
				w.show(id)
				_, err := w.Reader.Totals(context.Background(), id, head)
				require.NoError(t, err)
				_, err = w.Reader.Running(context.Background())
				require.NoError(t, err)
				w.Reader.LastRun(t.Context(), id)
				require.Equal(t, head, w.head(id))
				require.NotEqual(t, head, w.mustStep(id, StepOptions{Agent: "fake"}).Head)
				require.FileExists(t, keep)
				require.NotEmpty(t, w.head(other))
				require.NoFileExists(t, filepath.Join(w.Reader.Dirs.Home, runfiles.RecordFile))
				info, err := os.Lstat(w.Reader.RunDir(id).Path)
				require.NoError(t, err)
				require.True(t, info.IsDir())
			}
			require.LessOrEqual(t, len(warnings), 18)
		})
	}
}

// The record isn't flushed, so a power cut can damage it: a waiting result is adopted nevertheless.
func TestAResultIsAdoptedWithoutItsRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.killedAt(id, "!gate:ready@go")
	w.open("go")
	_, err := w.Reader.Wait(context.Background(), id)
	require.NoError(t, err)
	record, head := w.Reader.RunDir(id).File(runfiles.RecordFile), w.head(id)
	whole, err := os.ReadFile(record)
	require.NoError(t, err)
	for _, left := range [][]byte{nil, whole[:len(whole)/2], make([]byte, len(whole))} {
		require.NoError(t, os.WriteFile(record, left, 0o600))
		out := w.mustStep(id, StepOptions{})
		require.True(t, out.Adopted)
		require.NoError(t, w.Reader.Heads.Move(context.Background(), id, out.Head, head))
	}
	require.NoError(t, os.Remove(record))
	require.True(t, w.mustStep(id, StepOptions{}).Adopted)
	require.Equal(t, 1, w.agentRuns())
}

// An agent that removed its record still holds the thread after its engine was killed.
func TestAgentThatHidesIsSeen(t *testing.T) {
	t.Parallel()
	if proc.Birth(os.Getpid()) == "" {
		return // this system cannot identify processes; see docs/guarantees.md
	}
	for name, hide := range map[string]func(d rundir.Dir) error{
		"without its lock":          func(d rundir.Dir) error { return os.Remove(d.File(runfiles.LockFile)) },
		"without its record":        func(d rundir.Dir) error { return os.Remove(d.File(runfiles.RecordFile)) },
		"without its run directory": func(d rundir.Dir) error { return os.RemoveAll(d.Path) },
		"behind a link": func(d rundir.Dir) error {
			if err := os.Rename(d.Path, d.Path+".moved"); err != nil {
				return err
			}
			return os.Symlink(d.Path+".moved", d.Path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			id := w.start()
			w.killedAt(id, "!gate:ready@go")
			dir := w.Reader.RunDir(id)
			pid := dir.Read().Pid
			require.NoError(t, hide(dir))
			for range 2 {
				_, err := w.Step(context.Background(), id, StepOptions{})
				requireCode(t, err, protocol.CodeLocked, id)
			}
			require.Equal(t, 1, w.agentRuns())
			busy, err := w.Reader.Busy(context.Background(), id)
			require.NoError(t, err)
			require.True(t, busy || name == "without its record", "wait waits for it")
			stopped, err := w.Stop(context.Background(), id)
			require.NoError(t, err)
			require.True(t, stopped)
			require.True(t, gone(pid))
			w.plays("ready")
			require.False(t, w.mustStep(id, StepOptions{}).Adopted)
		})
	}
}

// If the stepping process is suspended and its agent has ended, Stop names that process.
func TestStopNamesASuspendedEngine(t *testing.T) {
	t.Parallel()
	if proc.Birth(os.Getpid()) == "" {
		return // this system cannot identify processes
	}
	w := newWorld(t, "")
	id := w.start()
	cmd := w.engineProcess(id, "!gate:ready@go")
	require.NoError(t, cmd.Start())
	w.eventually("the agent runs", func() bool { return len(w.runs()) == 2 && w.Reader.RunDir(id).Read().Pid != 0 })
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	w.eventually("it is suspended", func() bool { return proc.Stopped(cmd.Process.Pid) })
	w.open("go")
	agent := w.Reader.RunDir(id).Read()
	w.eventually("the agent has ended", func() bool { return agent.AgentEnded() })
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := w.Stop(ctx, id)
	require.Error(t, err)
	_, err = w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeLocked)
	require.Contains(t, hints.All("", e), fmt.Sprintf("to resume it: kill -CONT %d", cmd.Process.Pid))
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	_ = cmd.Wait() // it got the signal
}

// After a power cut, the output of an earlier step may be next to a record that is damaged, or of the next
// step. That is no reason to refuse a step.
func TestOutputOfAnEarlierStepIsNoResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.mustStep(id, StepOptions{})
	dir := w.Reader.RunDir(id)
	old, err := os.ReadFile(dir.File(runfiles.StdoutFile))
	require.NoError(t, err)
	for range 2 {
		w.mustStep(id, StepOptions{})
		r := dir.Read()
		r.Head, r.Status = w.head(id), rundir.Running
		require.NoError(t, dir.Write(r))
		require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), old, 0o600))
		require.False(t, w.mustStep(id, StepOptions{}).Adopted)
		require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), old, 0o600))
		require.NoError(t, os.WriteFile(dir.File(runfiles.RecordFile), make([]byte, 100), 0o600))
		require.False(t, w.mustStep(id, StepOptions{}).Adopted)
	}
}

// If the stdout of an agent is lost after it submitted its step, the result recorded by the submission is
// adopted. If nothing is left, that is reported.
func TestResultWithLostOutputIsAdopted(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(stdout string) error{
		"removed":   os.Remove,
		"emptied":   func(stdout string) error { return os.Truncate(stdout, 0) },
		"truncated": func(stdout string) error { return os.Truncate(stdout, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			var warnings []string
			w.onWarning(func(text string) { warnings = append(warnings, text) })
			id := w.start()
			w.killedAt(id, "!gate:ready@go")
			w.open("go")
			_, err := w.Reader.Wait(context.Background(), id)
			require.NoError(t, err)
			dir, head := w.Reader.RunDir(id), w.head(id)
			record, err := os.ReadFile(dir.File(runfiles.RecordFile))
			require.NoError(t, err)
			line, err := os.ReadFile(dir.File(runfiles.StdoutFile))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(dir.File(runfiles.ResultFile), line, 0o600))
			require.NoError(t, lose(dir.File(runfiles.StdoutFile)))

			require.True(t, w.show(id).Pending)
			out := w.mustStep(id, StepOptions{})
			require.True(t, out.Adopted)
			require.Equal(t, 1, w.agentRuns())
			require.Empty(t, warnings)

			require.NoError(t, w.Reader.Heads.Move(context.Background(), id, out.Head, head))
			require.NoError(t, os.WriteFile(dir.File(runfiles.RecordFile), record, 0o600))
			require.NoError(t, os.WriteFile(dir.File(runfiles.StdoutFile), line, 0o600))
			require.NoError(t, os.Remove(dir.File(runfiles.ResultFile)))
			require.NoError(t, lose(dir.File(runfiles.StdoutFile)))
			w.plays("ready")
			require.False(t, w.mustStep(id, StepOptions{}).Adopted)
			prosetest.Text(t, warnings)
		})
	}
}

// If the record of the last run is damaged, its outcome is shown as unknown.
func TestADamagedRecordIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	id := w.start()
	w.plays("!exit")
	_, err := w.Step(context.Background(), id, StepOptions{})
	require.Error(t, err)
	require.NoError(t, os.WriteFile(w.Reader.RunDir(id).File(runfiles.RecordFile), []byte("{"), 0o600))
	shown, err := w.Reader.Show(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, protocol.CodeCorrupt, shown.Error.Code)
	require.Contains(t, shown.Error.Message, w.Reader.RunDir(id).File(runfiles.RecordFile))
	w.plays("ready")
	require.Nil(t, w.mustStep(id, StepOptions{}).Error)
}
