package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/prosetest"
)

// A process that leaves the process group with a new session is killed, and not waited for.
func TestWhatLeavesTheGroupIsKilled(t *testing.T) {
	t.Parallel()
	const flee = `setsid sh -c 'exec 8<>fifo; echo > pid; exec sleep 300' & while [ ! -e pid ]; do sleep 0.01; done; `
	for name, c := range map[string]struct {
		line string
	}{
		"at the end":        {flee + "echo done"},
		"after the timeout": {flee + "wait"},
		"two generations":   {`setsid sh -c "( ` + `setsid sh -c 'exec 8<>fifo; echo > pid; exec sleep 300' & )"; while [ ! -e pid ]; do sleep 0.01; done`},
	} {
		w, r := commands(t, Commands{Shell: true, Exe: self(t)})
		fifo := filepath.Join(w.Dir(), "fifo")
		require.NoError(t, unix.Mkfifo(fifo, 0o600))
		prosetest.Text(t, call(t, r, "run_command", args{"command": c.line, "timeout": 1.0}), name)
		_, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0)
		require.ErrorIs(t, err, unix.ENXIO, "%s: nobody has it open", name)
	}
}
