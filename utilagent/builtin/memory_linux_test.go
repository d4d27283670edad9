package builtin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// Memory use does not grow with tool results: the agent's peak, measured by the kernel, stays below 60 MB.
func TestMemoryWithHugeResults(t *testing.T) {
	t.Parallel()
	const (
		size = 10 << 20
		most = 60 << 20 * shadow
	)
	for name, use := range map[string]string{
		"a command's output": call1("run_command", `{"command":"head -c %d /dev/zero | tr '\\0' 'x'"}`, size),
		"many lines":         call1("run_command", `{"command":"yes a line of text | head -c %d"}`, size),
		"a file":             call1("read_file", `{"path":"lines.txt"}`),
		"one long line":      call1("read_file", `{"path":"line.txt"}`),
		"matches":            call1("grep", `{"pattern":"line","path":"lines.txt"}`),
		"another's tool":     call1("dump", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			name, args, _ := strings.Cut(use, " ")
			got, peak := measure(t, size, call(name, args), call(name, args), say(done))
			require.Less(t, len(got.Turns[1].Content), 64<<10)
			require.Less(t, peak, int64(most))
		})
	}
}

// measure runs the agent as a process, with files of a size in the workspace, and returns its peak memory
// before the last reply.
func measure(t *testing.T, size int, replies ...reply) (*agentkittest.Outcome, int64) {
	t.Helper()
	script := &endpoint{replies: replies}
	var pid, peak atomic.Int64
	script.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peak.Store(peakOf(t, pid.Load()))
		script.answer(w, r)
	}))
	t.Cleanup(script.Close)
	s := script.scenario("")
	s.Environ = append(s.Environ, "UWF_BUILTIN_ALLOW_SHELL=1")
	th := agentkittest.New(t, s)
	lines := strings.Repeat("a line of text\n", size/15)
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "lines.txt"), []byte(lines), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(th.Cwd, "line.txt"), []byte(strings.Repeat("x", size)), 0o600))
	got := th.Play(func(e agentkit.Process) int { return start(t, e, &pid) }).Succeeded()
	require.Equal(t, len(replies), script.count())
	t.Logf("peak %d MB", peak.Load()>>20)
	return got, peak.Load()
}

func call1(name, args string, more ...any) string { return name + " " + fmt.Sprintf(args, more...) }

// start runs the agent in a separate process and stores its ID.
func start(t *testing.T, e agentkit.Process, pid *atomic.Int64) int {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, e.Args...)
	cmd.Dir, cmd.Env = e.Dir, append(e.Environ, asAgent+"=1")
	cmd.Stdout, cmd.Stderr = e.Stdout, e.Stderr
	require.NoError(t, cmd.Start())
	pid.Store(int64(cmd.Process.Pid))
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// peakOf returns the peak memory of a process in bytes. A rusage would include its parent's, which it shares
// until exec.
func peakOf(t *testing.T, pid int64) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Error(err)
			}
			return kB << 10
		}
	}
	t.Error("the kernel does not say how much memory a process has had")
	return 0
}
