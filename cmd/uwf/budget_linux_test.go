package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// On a terminal, a run that reaches its cost limit asks whether to double it; no answer means no. (A report:
// "it stopped with me beside it".)
func TestARunAtItsBudgetAsksForMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"loop.yaml": loopWorkflow, "scenario.yaml": loopScenario} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	on := func(answers string, args ...string) (shown string, code int) {
		tty := openPTY(t)
		_, err := tty.master.WriteString(answers)
		require.NoError(t, err)
		cmd := exec.Command("uwf", args...)
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, tty.slave, tty.slave, tty.slave
		cmd.Env = append(os.Environ(), "UWF_HOME="+filepath.Join(dir, "home"), "HOME="+dir, "TERM=xterm")
		_ = cmd.Run() // the exit status is checked instead
		return tty.text(t), cmd.ProcessState.ExitCode()
	}
	const agent = "uwf-mock --mock-data scenario.yaml"
	shown, code := on("y\n\n", "run", "loop.yaml", "-p", "task", "--max-cost", "1", "--agent", agent)
	require.Equal(t, 6, code, shown)
	prosetest.Text(t, shown)

	shown, code = on("y\nn\n", "thread", "resume", "@", "--agent", agent)
	require.Equal(t, 6, code, shown)
	prosetest.Text(t, shown)

	shown, code = on("y\n\n", "run", "loop.yaml", "-p", "task", "--max-tokens", "15", "--agent", agent)
	require.Equal(t, 6, code, shown)
	prosetest.Text(t, shown)
	require.Contains(t, shown, "granted 15 more tokens")
}
