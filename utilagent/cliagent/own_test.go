package cliagent

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	dirs "github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

func TestOwnPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	of := func(words ...string) (dirs, files []string) {
		o, err := own(words, "/work/my.dir", func(name string) string { return env[name] })
		require.NoError(t, err)
		return o.dirs, o.files
	}
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(home, filepath.FromSlash(name)))
		}
		return paths
	}
	dirs, files := of("claude", "claude")
	require.Subset(t, dirs, at(".claude/projects/-work-my-dir", ".claude/todos"))
	for _, closed := range at(".claude", ".claude/projects", ".claude/shell-snapshots", ".claude/session-env") {
		require.NotContains(t, dirs, closed, "others' sessions obey it")
	}
	require.Subset(t, files, at(".claude.json"))
	real, err := filepath.EvalSymlinks(home)
	require.NoError(t, err)
	obeys := obeyed([]string{"claude"}, func(name string) string { return env[name] })
	require.Equal(t, []string{".claude.json"}, obeys[real])
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, "{}\n", string(text))
	require.NoError(t, os.WriteFile(files[0], []byte("mine"), 0o600))
	of("claude")
	text, err = os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, "mine", string(text), "what is there stays")

	dirs, _ = of("opencode")
	require.Equal(t, at(".config/opencode", ".local/share/opencode", ".local/state/opencode"), dirs)
	dirs, _ = of("npx", "-y", "/some/where/gemini", "--acp")
	require.Equal(t, at(".gemini"), dirs)
	dirs, _ = of("my-agent", "--ssh")
	require.Equal(t, at(".config/my-agent", ".local/share/my-agent", ".local/state/my-agent", ".my-agent"), dirs)
	require.NoDirExists(t, dirs[0], "of a program that is not known nothing is made")
	dirs, _ = of("npx", "-y", "@google/gemini-cli@0.61.0", "--acp")
	require.Equal(t, at(".gemini"), dirs)
	for _, name := range []string{"ssh", "/bin/sh", "git", ".config", "npx"} {
		dirs, files = of(name)
		require.Empty(t, append(dirs, files...), name)
	}

	env["CODEX_HOME"], env["CLAUDE_CONFIG_DIR"] = filepath.Join(home, "c"), filepath.Join(home, "d")
	dirs, _ = of("codex")
	require.Equal(t, at("c/sessions", "c/archived_sessions", "c/thread-writer-locks", "c/log"), dirs)
	dirs, files = of("claude")
	require.Contains(t, dirs, at("d/todos")[0])
	require.Empty(t, files)
	env = map[string]string{}
	dirs, files = of("claude")
	require.Empty(t, append(dirs, files...))
}

// What a program writes into the caches of a person is run later, by npx, by a hook, by
// a build: it has caches of its own, and nothing of its user's.
func TestACacheOfItsOwn(t *testing.T) {
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

// A repository that a program plants in its cache, and a link from the workspace that
// leads there, are gone after it.
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
	changed, err := watched.Restore()
	require.NoError(t, err)
	require.Contains(t, changed.String(), "lib")
	require.NoFileExists(t, filepath.Join(planted, "config"))
	_, err = os.Lstat(filepath.Join(cwd, "lib"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
