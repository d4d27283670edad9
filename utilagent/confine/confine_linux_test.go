package confine_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
)

// The test binary acts as the agent's program.
func TestMain(m *testing.M) {
	if status, ok := bind.Dispatch(os.Args[1:], os.Environ(), os.Stderr); ok {
		os.Exit(status)
	}
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		fmt.Println(probe(os.Args[2], os.Args[3:]))
		os.Exit(0)
	}
	os.Exit(prosetest.Run(m))
}

// run runs a script that may write to dirs and returns its output.
func run(t *testing.T, script string, dirs ...string) (string, int) {
	t.Helper()
	return runUnder(t, confine.Rules{Dirs: dirs}, script)
}

// runUnder runs a script under rules; $AGENT is this program, which dispatches and probes.
func runUnder(t *testing.T, rules confine.Rules, script string) (string, int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	_, err = confine.Command(exe, confine.Rules{}, proc.Command{})
	require.ErrorIs(t, err, confine.ErrUnavailable, "a test that does not dispatch would start itself for ever")
	agent := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.Symlink(exe, agent))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	c, err := confine.Command(agent, rules, proc.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Env: []string{"PATH=" + os.Getenv("PATH"), "MINE=1", "AGENT=" + agent}, Stdout: write, Stderr: write,
	})
	require.NoError(t, err)
	child, err := proc.Start(c)
	require.NoError(t, err)
	require.NoError(t, write.Close())
	out, err := io.ReadAll(read)
	require.NoError(t, err)
	status, err := child.Wait(t.Context(), 0)
	require.NoError(t, err)
	return string(out), status.Code
}

func TestOnlyItsDirectoriesCanBeWritten(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		_, err := confine.Command("x", confine.Rules{}, proc.Command{})
		require.ErrorIs(t, err, confine.ErrUnavailable)
		return
	}
	base := t.TempDir()
	inside, outside := filepath.Join(base, "in"), filepath.Join(base, "out")
	require.NoError(t, os.Mkdir(inside, 0o755))
	require.NoError(t, os.Mkdir(outside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("old"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(inside, "link")))

	out, code := run(t, `cd "`+inside+`" && echo new > a && mkdir d && mv a d/b && ln d/b c && rm d/b && cat ../out/f && echo $MINE >/dev/null`, inside)
	require.Equal(t, "old", out)
	require.Equal(t, 0, code)
	require.FileExists(t, filepath.Join(inside, "c"))

	for _, script := range []string{
		"echo x > OUT/new", "echo x > OUT/f", ": > OUT/f", "rm OUT/f", "mkdir OUT/d", "mv OUT/f IN/f", "mv IN/c OUT/c", "ln IN/c OUT/c", "ln OUT/f IN/hard",
		"ln -s x OUT/l", "echo x > IN/link/new", "echo x > IN/../out/new", "echo x > OUT/../in2", "truncate -s 0 OUT/f",
	} {
		script = strings.NewReplacer("OUT", outside, "IN", inside).Replace(script)
		_, code := run(t, script, inside)
		if code == 0 && strings.HasPrefix(script, "mv ") {
			continue // it may have created a copy; the original is checked below
		}
		require.NotZero(t, code, script)
	}
	b, err := os.ReadFile(filepath.Join(outside, "f"))
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Shared memory consists of the user's files, which contain other programs' data.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	f, err := os.CreateTemp(confine.SharedMemory, "uwf-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(f.Name())) })
	_, err = f.WriteString("memory of another program")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, script := range []string{"cat FILE", "echo x > FILE", "echo x > FILE-new", "rm FILE", "mv FILE FILE-new"} {
		out, code := run(t, strings.ReplaceAll(script, "FILE", f.Name()), t.TempDir())
		require.NotZero(t, code, script)
		require.NotContains(t, out, "memory of")
		require.NoFileExists(t, f.Name()+"-new")
	}
	out, code := runUnder(t, confine.Rules{IPC: true}, strings.ReplaceAll("cat FILE && echo x > FILE-new && rm FILE-new && ! mkdir FILE-new", "FILE", f.Name()))
	require.Contains(t, out, "memory of")
	require.Zero(t, code, "who may share memory makes plain files")
	_, code = run(t, strings.ReplaceAll("cat FILE && mkdir FILE-new && rmdir FILE-new", "FILE", f.Name()), confine.SharedMemory)
	require.Zero(t, code, "who names the directory means it")
}

// The agent's environment contains the model's keys; a command must not read it.
func TestOtherProcessesAreClosed(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	agent := fmt.Sprintf("/proc/%d/environ", os.Getpid())
	out, code := run(t, strings.ReplaceAll("cat FILE | tr '\\0' '\\n'; test -r FILE", "FILE", agent), t.TempDir())
	require.NotContains(t, out, "=", "exit %d", code)
	if confine.Level() >= 6 {
		_, code = run(t, fmt.Sprint("kill -0 ", os.Getpid()), t.TempDir())
		require.NotZero(t, code)
	}
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	_, dispatched := bind.Dispatch([]string{"thread", "role"}, nil, io.Discard)
	require.False(t, dispatched)
	for _, args := range [][]string{{confine.Argument}, {confine.Argument, "{", "/bin/true"}} {
		var said strings.Builder
		status, dispatched := bind.Dispatch(args, nil, &said)
		require.True(t, dispatched)
		require.Equal(t, 126, status)
		prosetest.Text(t, said.String())
	}
}

// A program started by a restricted one can restrict itself further; both sets of rules apply.
func TestBoundAgain(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	outer, inner := t.TempDir(), t.TempDir()
	script := `echo a > ` + outer + `/a && "$AGENT" ` + confine.Argument + ` '{"dirs":["` + inner + `"]}' /bin/sh -c 'echo b > ` +
		outer + `/b; echo c > ` + inner + `/c'`
	run(t, script, outer)
	require.FileExists(t, filepath.Join(outer, "a"))
	require.NoFileExists(t, filepath.Join(outer, "b"))
	require.NoFileExists(t, filepath.Join(inner, "c"))
}

// A daemon with a new environment, session and parent does not outlive its command: it would write after the
// final check.
func TestNothingOutlivesACommand(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		return // confinement is unavailable
	}
	const daemon = `sh -c 'trap "" TERM INT HUP; echo $$ >DIR/pid; exec 8>FIFO; echo began >&8; exec sleep 300'`
	for name, c := range map[string]struct {
		script string
		code   int
	}{
		"a daemon":      {"env -i setsid " + daemon + " & head -c 1 FIFO", 0},
		"two forks":     {"(env -i setsid " + daemon + " &) & head -c 1 FIFO", 0},
		"a killed one":  {"env -i setsid " + daemon + " & head -c 1 FIFO; kill -KILL $$", -1},
		"no namespaces": {`"$AGENT" probe confined "$SCRIPT" DIR && ! kill -0 $(cat DIR/pid)`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fifo := filepath.Join(dir, "fifo")
			require.NoError(t, unix.Mkfifo(fifo, 0o600))
			f, err := os.OpenFile(fifo, os.O_RDWR, 0) // opens both ends, so that opening does not block
			require.NoError(t, err)
			script := c.script
			if strings.Contains(script, "$SCRIPT") {
				script = "SCRIPT=$(cat <<'EOF'\nenv -i setsid " + daemon + " & head -c 1 FIFO\nEOF\n)\n" + script
			}
			_, code := run(t, strings.NewReplacer("FIFO", fifo, "DIR", dir).Replace(script), dir)
			require.Equal(t, c.code, code)
			require.NoError(t, f.Close())
			// A process forked by another test has all descriptors of this process until exec. A daemon
			// sleeps for 300 s.
			require.Eventually(t, func() bool {
				w, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
				if err == nil {
					_ = w.Close()
				}
				return errors.Is(err, unix.ENXIO)
			}, time.Minute, 10*time.Millisecond, "nobody has it open")
		})
	}
}

// The command's process IDs match /proc, it gets only the standard streams, and its status is reported.
func TestACommandHasItsOwnProcesses(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		return // confinement is unavailable
	}
	out, code := run(t, `env | grep STATUS; test "$(sh -c 'echo $PPID')" = $$ && test -d /proc/$$ || exit 8; ls /proc/self/fd; exit 7`)
	require.Equal(t, "0\n1\n2\n3\n", out, "the last one is the list itself")
	require.Equal(t, 7, code)
}
