//go:build unix

package discover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// installed installs programs in a PATH directory.
func installed(t *testing.T, scripts map[string]string) env.Env {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		programtest.Write(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "uwf-notes.txt"), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "uwf-directory"), 0o755))
	return env.Env{Environ: []string{"PATH=" + dir + ":relative:/nowhere:/usr/bin:/bin"}, Dir: t.TempDir()}
}

func TestOnPath(t *testing.T) {
	t.Parallel()
	e := installed(t, map[string]string{"uwf-b": "", "uwf-a": "", "uwf": "", "uwf-import-original": "", "uwf-web": "", "uwf-remote-ssh": "", "uwf-temporal": "", "other": ""})
	require.Equal(t, []string{"uwf-a", "uwf-b"}, OnPath(e))
	for _, name := range []string{"uwf-a", "uwf-b", "uwf", "uwf-import-original", "uwf-web", "uwf-remote-ssh", "other", "uwf-c", "uwf-/a", "../uwf-a"} {
		require.Equal(t, slices.Contains(OnPath(e), name), Installed(e, name), name)
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	const answers = `case "$1" in --version) echo "uwf-x 1.2.3";; --check) `
	for name, c := range map[string]struct {
		command, script string
		want            Agent
		fails           bool
	}{
		"an agent": {"uwf-x", answers + "exit 2;; esac", Agent{Version: "1.2.3"}, false},
		"one that drives a program": {"uwf-x", answers + `echo '{"program":"/bin/x","version":"9","problems":[{"what":"old","do":"renew"}]}';; esac`,
			Agent{Version: "1.2.3", Check: &protocol.AgentCheck{Program: "/bin/x", Version: "9", Problems: []protocol.AgentProblem{{What: "old", Do: "renew"}}}}, false},
		"one that answers nonsense":           {"uwf-x", answers + "echo hello;; esac", Agent{Version: "1.2.3"}, false},
		"one that fails":                      {"uwf-x", "exit 3", Agent{}, true},
		"one that floods":                     {"uwf-x", `[ "$1" = --version ] && head -c 10000000 /dev/zero || exit 2`, Agent{Version: ""}, false},
		"a program that only plays the agent": {"other", "echo must not be started >&2; exit 1", Agent{}, false},
		"nothing":                             {"uwf-nowhere", "", Agent{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := installed(t, map[string]string{"uwf-x": c.script, "other": c.script})
			got := Ask(t.Context(), c.command, nil, e)
			if c.fails {
				prosetest.Error(t, got.Err)
				return
			}
			require.NoError(t, got.Err)
			require.Equal(t, c.want.Check, got.Check)
			require.Equal(t, c.want.Version, got.Version)
		})
	}
}
