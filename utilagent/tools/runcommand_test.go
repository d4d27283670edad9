//go:build unix

package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/secret"
)

// commands returns a registry with run_command in a new workspace.
func commands(t *testing.T, c Commands) (*Workspace, *Registry) {
	t.Helper()
	w, r := space(t, map[string]string{"sub/f": "in sub\n"})
	if c.Env == nil {
		c.Env = CommandEnv(os.Environ(), &secret.Set{}, nil)
	}
	require.NoError(t, r.Add(RunCommand(w, c)))
	return w, r
}

func TestCommandsAreOffUnlessAllowed(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{})
	prosetest.Text(t, call(t, r, "run_command", args{"command": "true"}))
	for _, s := range r.Specs() {
		require.NotEqual(t, "run_command", s.Name, "a tool that is off is not offered")
	}
}

func TestRunsShellCommands(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		args args
		want string
	}{
		{"output and errors in order", args{"command": "echo a; echo b >&2; echo c"}, "a\nb\nc\n[exit 0]"},
		{"exit status", args{"command": "exit 3"}, "[exit 3]"},
		{"no input", args{"command": "cat"}, "[exit 0]"},
		{"in a directory", args{"cmd": "cat f", "cwd": "sub"}, "in sub\n[exit 0]"},
		{"bytes that are no text", args{"command": `printf '\377'`}, "�\n[exit 0]"},
		{"a signal", args{"command": "kill -9 $$"}, "[ended by signal killed]"},
		{"outside", args{"command": "true", "cwd": ".."}, "Error: .. is outside the workspace"},
		{"no directory", args{"command": "true", "cwd": "sub/f"}, "Error: cwd sub/f is not a directory"},
		{"nothing", args{"command": " "}, "Error: the command is empty"},
		{"a timeout beyond every limit", args{"command": "echo a", "timeout": float64(1 << 40)}, "a\n[exit 0]"},
	}
	_, r := commands(t, Commands{Shell: true})
	for _, c := range cases {
		require.True(t, strings.HasPrefix(call(t, r, "shell_exec", c.args), c.want), "%s: %s", c.name, call(t, r, "shell_exec", c.args))
	}
}

func TestAllowListRunsWithoutAShell(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{Allow: []string{"echo", "printf"}})
	prosetest.Text(t, call(t, r, "run_command", args{"command": `echo "a b" '$HOME' \* 2>&1`}))
	require.Equal(t, "HEAD~1 a#b\n[exit 0]", call(t, r, "run_command", args{"command": `echo HEAD~1 a#b`}))
	require.Equal(t, "a b c\n[exit 0]", call(t, r, "run_command", args{"command": "echo a \\\n  b\\\n c"}), "a line goes on after a backslash")
	for _, line := range []string{
		"echo a | echo b", "echo a; echo b", "echo a && echo b", "echo $HOME", `echo "$(id)"`, "echo `id`", "echo a > f", "echo *", "X=1 echo a", "echo a\necho b", "echo ~", "echo 'open",
		"echo a & echo b", "echo a &", "echo a |& cat", "X=$(id) echo", "echo a\n\n echo b", "echo a\r\necho b", "(echo a)", "echo <(id)", "echo a 2>f", "echo ${HOME}", "echo \"`id`\"",
	} {
		require.True(t, strings.HasPrefix(call(t, r, "run_command", args{"command": line}), "Error: "), line)
	}
	for _, line := range []string{"id", "/bin/echo a", "./echo a", "sh -c id", "env echo a", "exec echo a", "command echo", "../echo a", "ECHO a", "'./echo' a", "e\\cho2"} {
		require.Contains(t, call(t, r, "run_command", args{"command": line}), "Allowed programs: echo, printf", line)
	}
}

func TestRefusedCommandsDoNotRun(t *testing.T) {
	t.Parallel()
	w, r := commands(t, Commands{Shell: true, Refuse: func(line string) error {
		if strings.Contains(line, "uwf run") {
			return errors.New("the engine waits for you. Do the work yourself")
		}
		return nil
	}})
	require.Equal(t, "Error: the engine waits for you. Do the work yourself", call(t, r, "run_command", args{"command": "touch f; uwf run x"}))
	require.NoFileExists(t, filepath.Join(w.Dir(), "f"))
}

// Long output loses its middle, in bounded memory.
func TestLongOutputKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{Shell: true})
	text := call(t, r, "run_command", args{"command": "echo first; yes 0123456789 | head -c 3000000; echo; echo last"})
	require.True(t, strings.HasPrefix(text, "first\n0123456789\n"))
	require.True(t, strings.HasSuffix(text, "last\n[exit 0]"))
	require.LessOrEqual(t, len(text), MaxResult)
	prosetest.Text(t, text)
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	t.Parallel()
	w, r := commands(t, Commands{Shell: true})
	text := call(t, r, "run_command", args{
		"command": "trap '' TERM; echo begun; (trap '' TERM; sleep 300; touch late) & echo $! > pid; wait", "timeout": 1.0,
	})
	prosetest.Text(t, text)
	requireGone(t, w)
}

func TestWhatACommandLeavesBehindIsKilled(t *testing.T) {
	t.Parallel()
	w, r := commands(t, Commands{Shell: true})
	began := time.Now()
	require.Equal(t, "[exit 0]", call(t, r, "run_command", args{"command": "sleep 300 & echo $! > pid"}))
	require.Less(t, time.Since(began), 30*time.Second, "a background job that holds the pipe is not waited for")
	requireGone(t, w)
}

// An allowed program is the user's, not one that the model wrote.
func TestAllowedProgramsAreNotTheWorkspaces(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"bin/true": "#!/bin/sh\necho fake\n", "true": "#!/bin/sh\necho fake\n"})
	for _, name := range []string{"bin/true", "true"} {
		require.NoError(t, os.Chmod(filepath.Join(w.Dir(), name), 0o755))
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(w.Dir(), "bin"), link))
	env := []string{"PATH=" + strings.Join([]string{"", ".", "bin", filepath.Join(w.Dir(), "bin"), link, os.Getenv("PATH")}, ":")}
	require.NoError(t, r.Add(RunCommand(w, Commands{Allow: []string{"true"}, Env: env})))
	require.Equal(t, "[exit 0]", call(t, r, "run_command", args{"command": "true"}))
}

// Memory is bounded, whatever the size of the output.
func TestAGigabyteOfOutput(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{Shell: true})
	text := call(t, r, "run_command", args{"command": "echo first; head -c 1000000000 /dev/zero; echo last", "timeout": 600.0})
	require.True(t, strings.HasPrefix(text, "first\n"))
	require.True(t, strings.HasSuffix(text, "last\n[exit 0]"))
	require.LessOrEqual(t, len(text), MaxResult)
	prosetest.Text(t, text)

	o := output{create: func() (*os.File, error) { return nil, os.ErrPermission }}
	for range 1000 {
		o.add(make([]byte, 32<<10))
	}
	require.Less(t, cap(o.head)+cap(o.tail), 256<<10, "what is held in memory")
	require.Equal(t, 1000*32<<10, len(o.head)+o.dropped+len(o.tail))
}

func TestCancelEndsACommand(t *testing.T) {
	t.Parallel()
	w, r := commands(t, Commands{Shell: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped by a person")
	go func() {
		for ctx.Err() == nil {
			if b, err := os.ReadFile(filepath.Join(w.Dir(), "pid")); err == nil && len(b) > 1 {
				cancel(stop)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := r.Call(ctx, "run_command", args{"command": "sleep 300 & echo $! > pid; wait"})
	require.ErrorIs(t, err, stop)
	requireGone(t, w)
}

// requireGone waits until the process in the file pid has ended.
func requireGone(t *testing.T, w *Workspace) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(content(t, w, "pid")))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && strings.Contains(string(stat), ") Z ") // a zombie
	}, 20*time.Second, 5*time.Millisecond, "process %d still runs", pid)
}

func TestCommandsDoNotSeeKeys(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "MY_KEY=named", "DB=pg://a:b@c/d", "GH_TOKEN=gh-0123456789", "COPY=prefix-sk-12345678", "OPENAI_API_KEY=sk-x",
		"UWF_HEAD=0123456789ABC", "UWF_RUN_DIR=x", "UWF_HOME=home", "PLAIN=yes",
	}
	_, r := commands(t, Commands{Shell: true, Env: CommandEnv(environ, secret.NewSet("sk-12345678"), []string{"GH_TOKEN", "UWF_HEAD"})})
	text := call(t, r, "run_command", args{"command": "env"})
	require.Contains(t, text, "PLAIN=yes")
	require.Contains(t, text, "UWF_HOME=home")
	require.Contains(t, text, "GIT_PAGER=cat")
	require.Contains(t, text, "GH_TOKEN=gh-0123456789")
	for _, hidden := range []string{"MY_KEY", "DB=", "COPY", "OPENAI_API_KEY", "UWF_HEAD", "UWF_RUN_DIR"} {
		require.NotContains(t, text, hidden)
	}
}

func FuzzSplitWords(f *testing.F) {
	for _, seed := range []string{`echo a "b c" 'd'`, `a\ b`, `"\""`, `'`, "a\nb", "x=1 y", "~", "a # b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitWords(line)
		if err != nil {
			return
		}
		// Quoting and splitting the words again must give the same words.
		var quoted []string
		for _, w := range words {
			quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
		}
		again, err := splitWords(strings.Join(quoted, " "))
		require.NoError(t, err)
		require.Equal(t, words, again)
	})
}
