package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// "It stopped with me beside it": on a terminal a run that has cost what it may asks how
// much more; no is the answer of whoever says nothing.
func TestARunAtItsBudgetAsksHowMuchMore(t *testing.T) {
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
		_ = cmd.Run() // the exit status tells
		return tty.text(t), cmd.ProcessState.ExitCode()
	}
	const agent = "uwf-mock --mock-data scenario.yaml"
	shown, code := on("lots\n0.5\n\n", "run", "loop.yaml", "-p", "task", "--max-cost", "1", "--agent", agent)
	require.Equal(t, 6, code, shown)
	require.Contains(t, shown, "the run has cost $1.20 of at most $1.00 (maxCostUsd)")
	require.Contains(t, shown, "How much more may it cost? (y: as much again; or dollars, such as 2.50) [y/N] ")
	require.Contains(t, shown, "  an amount, y for as much again, or n")
	require.Contains(t, shown, "granted $0.500 more: the run has cost $1.20, and may cost $1.70 in all")
	require.Contains(t, shown, "the run has cost $2.00 of at most $1.70")
	require.Contains(t, shown, "to grant as much again: ", "what a script is told")

	shown, code = on("y\nn\n", "thread", "resume", "@", "--agent", agent)
	require.Equal(t, 6, code, shown)
	require.Contains(t, shown, "granted $1.00 more: the run has cost $2.00, and may cost $3.00 in all")
	require.Contains(t, shown, "the run has cost $3.20 of at most $3.00")

	shown, code = on("15\n\n", "run", "loop.yaml", "-p", "task", "--max-tokens", "15", "--agent", agent)
	require.Equal(t, 6, code, shown)
	require.Contains(t, shown, "How many more tokens may it use? (y: as many again; or a number, such as 200000) [y/N] ")
	require.Contains(t, shown, "granted 15 more tokens")
}
