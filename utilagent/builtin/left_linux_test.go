package builtin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// A daemon that cleared its environment is killed with its command, so that the next command works alone. (If
// it survived, the second command would wait in vain.)
func TestDaemonsEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	const daemon = `env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 300' & while ! [ -e pid ]; do sleep 0.01; done`
	e := serve(t, call("run_command", `{"command":"`+daemon+`"}`), call("run_command", `{"command":"test -e /proc/$(cat pid) || echo it is gone"}`), say(done))
	s := e.scenario("sandbox: { mode: none }") // tests cannot confine; unconfined commands can do more
	s.Environ = append(s.Environ, "UWF_BUILTIN_ALLOW_SHELL=1")
	th := agentkittest.New(t, s)
	got := th.Play(process(t.Context(), t)).Succeeded()
	prosetest.Text(t, got.Turns[3].Content)
	prosetest.Text(t, got.Stderr, "the engine tells a person what begins so")
	_, err := os.Stat(filepath.Join(th.Cwd, "pid"))
	require.NoError(t, err)
}

// A command left by a killed agent would interfere with the next try.
func TestCommandsOfAKilledTryAreEnded(t *testing.T) {
	t.Parallel()
	e := serve(t, say(done))
	s := e.scenario("sandbox: { mode: none }")
	s.Environ = append(s.Environ, "UWF_BUILTIN_ALLOW_SHELL=1")
	th := agentkittest.New(t, s)
	orphan := exec.Command("sleep", "300")
	orphan.Env = append(os.Environ(), "UWF_STARTED_FOR="+th.RunDir)
	require.NoError(t, orphan.Start())
	require.Eventually(t, func() bool { // right after exec the kernel shows no environment
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", orphan.Process.Pid))
		return err == nil && strings.Contains(string(environ), th.RunDir)
	}, time.Minute, time.Millisecond)
	got := th.Run(Options()).Succeeded()
	require.Error(t, orphan.Wait(), "it was killed")
	prosetest.Text(t, got.Stderr)
}
