package cliagent

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	dirs "github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

func TestOpencodeConfig(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"": `{"snapshot":false}`, "null": `{"snapshot":false}`, `{"model":"a/b","snapshot":true}`: `{"model":"a/b","snapshot":false}`} {
		got, err := OpencodeConfig(content, map[string]any{"snapshot": false})
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := OpencodeConfig("[", nil)
	require.ErrorContains(t, err, "OPENCODE_CONFIG_CONTENT")
}

// The contents of the user's caches are run later, by npx, a hook, or a build. So a program has private
// caches.
func TestSeparateCache(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is confined")
		return
	}
	home, cwd := t.TempDir(), t.TempDir()
	for _, dir := range []string{".npm", ".gradle/wrapper", "go/pkg"} {
		require.NoError(t, os.MkdirAll(filepath.Join(home, filepath.FromSlash(dir)), 0o755))
	}
	r := &runner{adapter: Adapter{Name: "claude-code", Program: "claude"}, cwd: cwd, req: &agentkit.Request{},
		env:    env.Env{Environ: []string{"HOME=" + home}, Exe: "/bin/agent", Stderr: io.Discard, Now: time.Now},
		around: &runenv.Run{Dirs: dirs.Dirs{Home: filepath.Join(home, ".uwf"), Store: filepath.Join(home, ".uwf", "cas")}},
	}
	r.permission = Bypass
	c, err := r.confined()
	require.NoError(t, err)
	own := filepath.Join(home, ".cache/uwf/agents/claude-code")
	require.Subset(t, c.env, []string{"XDG_CACHE_HOME=" + own, "npm_config_cache=" + own + "/npm", "GOCACHE=" + own + "/go-build"})
	require.Subset(t, c.rules.Dirs, []string{own, filepath.Join(home, ".claude", "todos"), cwd})
	for _, dir := range []string{".npm", ".cache", ".cache/go-build", ".gradle/wrapper", "go/pkg"} {
		require.NotContains(t, c.rules.Dirs, filepath.Join(home, filepath.FromSlash(dir)))
	}
	require.NotContains(t, c.rules.Dirs, confine.SharedMemory)
	require.False(t, c.rules.IPC, "memory is shared with the user's programs where the user says so")

	require.NoError(t, c.close())
	require.False(t, c.rules.Terminals)

	r.adapter = Adapter{Name: "gemini", Program: "gemini"}
	c, err = r.confined()
	require.NoError(t, err)
	require.NoError(t, c.close())
	require.True(t, c.rules.Terminals, "it runs its commands in terminals")
}

// A repository that a program plants in its cache, and a link to it in the workspace, are removed afterwards.
func TestNoLinkLeadsToARepositoryInTheCache(t *testing.T) {
	t.Parallel()
	home, cwd := t.TempDir(), t.TempDir()
	own := filepath.Join(home, ".cache/uwf/agents/claude-code")
	require.NoError(t, os.MkdirAll(own, 0o755))
	r := &runner{adapter: Adapter{Name: "claude-code", Program: "claude"}, cwd: cwd, req: &agentkit.Request{},
		env:    env.Env{Environ: []string{"HOME=" + home}, Exe: "/bin/agent", Stderr: io.Discard, Now: time.Now},
		around: &runenv.Run{Dirs: dirs.Dirs{Home: filepath.Join(home, ".uwf"), Store: filepath.Join(home, ".uwf", "cas")}},
	}
	r.permission = Bypass
	_, _, watched, err := r.rules(t.TempDir(), []string{own})
	require.NoError(t, err)
	planted := filepath.Join(own, "y", ".git")
	require.NoError(t, os.MkdirAll(filepath.Join(planted, "objects"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(planted, "refs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(planted, "HEAD"), []byte("ref: refs/heads/x\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(planted, "config"), []byte("[core]\n\tfsmonitor = \"id\"\n"), 0o644))
	require.NoError(t, os.Symlink(filepath.Join(own, "y"), filepath.Join(cwd, "lib")))
	said, err := watched.End(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(said, "\n"), "lib")
	_, err = os.Lstat(filepath.Join(cwd, "lib"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Files that a session's shells obey can be written by that session alone, and are removed with the step.
func TestSessionDirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	r := &runner{adapter: Adapter{Name: "claude-code", Program: "claude"}, env: env.Env{Environ: []string{"HOME=" + home}}}
	require.NoError(t, r.grant([]string{"session-env/s"}), "nothing is confined: nothing to do")
	require.NoDirExists(t, filepath.Join(home, ".claude"))

	r.confinement = &confinement{}
	require.NoError(t, r.grant([]string{"session-env/s"}))
	require.NoError(t, r.grant([]string{"session-env/s"}), "a second call of the step")
	own := filepath.Join(home, ".claude", "session-env", "s")
	require.DirExists(t, own)
	require.Equal(t, []string{own}, r.confinement.rules.Dirs)
	require.Equal(t, []string{own}, r.confinement.granted)
	for _, forged := range []string{"session-env/../hooks", "session-env/../../.ssh", "/etc", "session-env/", "session-env/."} {
		require.Error(t, r.grant([]string{forged}), forged)
	}
	require.Len(t, r.confinement.rules.Dirs, 1)
}

// The paths that a program's own sandbox hides become one argument. They don't grow with the threads of the home.
func TestHiddenPathsAreFew(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	runs := filepath.Join(home, ".uwf", "runs")
	for _, thread := range []string{"A", "B", "C"} {
		require.NoError(t, os.MkdirAll(filepath.Join(runs, thread), 0o700))
	}
	r := &runner{adapter: Adapter{Name: "codex", Program: "codex"}, cwd: t.TempDir(), runDir: filepath.Join(runs, "A"), req: &agentkit.Request{},
		env:    env.Env{Environ: []string{"HOME=" + home}, Exe: "/bin/agent", Stderr: io.Discard, Now: time.Now},
		around: &runenv.Run{Dirs: dirs.Dirs{Home: filepath.Join(home, ".uwf"), Store: filepath.Join(home, ".uwf", "cas")}},
	}
	r.permission = Edits
	c, err := r.confined()
	require.NoError(t, err)
	require.Nil(t, c, "codex confines its commands itself")
	real, err := filepath.EvalSymlinks(home)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(real, ".uwf")}, r.hidden)
}
