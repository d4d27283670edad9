package cliagent

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

func TestOwnPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	of := func(words ...string) (dirs, files []string) {
		o, err := own(words, "/work/my.dir", filepath.Join(home, "tmp"), filepath.Join(home, "state"), func(name string) string { return env[name] })
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
	require.Equal(t, at(".local/share/opencode/log", ".local/share/opencode/tool-output", ".local/share/opencode/storage", ".local/state/opencode"), dirs)
	dirs, _ = of("my-agent", "--ssh")
	require.Equal(t, at(".config/my-agent", ".local/share/my-agent", ".local/state/my-agent", ".my-agent"), dirs)
	require.NoDirExists(t, dirs[0], "of a program that is not known nothing is made")
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

// What known programs may write is what they need, by name: all else in their own
// directories says what they run when their user starts them next.
func TestNoOwnDirectoryIsWrittenWhole(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	vars := map[string]string{"HOME": home, "XDG_DATA_HOME": filepath.Join(home, "data")}
	env := func(name string) string { return vars[name] }
	for _, program := range []string{"claude", "codex", "gemini", "qwen", "hermes", "copilot", "opencode", "goose", "crush", "amp", "cursor-agent"} {
		o, err := own([]string{program}, "/work", t.TempDir(), filepath.Join(home, "apart", program), env)
		require.NoError(t, err)
		require.NotEmpty(t, o.reads)
		for _, dir := range o.dirs {
			known := dir == filepath.Join(home, ".local/state/opencode") || dir == filepath.Join(home, ".cursor") // docs/agents.md says so
			require.True(t, known || !slices.Contains(o.reads, dir), "%s may write all of %s", program, dir)
		}
	}
	o, err := own([]string{"crush", "run"}, "/work", t.TempDir(), filepath.Join(home, "apart"), env)
	require.NoError(t, err)
	require.Contains(t, o.reads, filepath.Join(home, "data/crush"))
	require.Regexp(t, "^CRUSH_GLOBAL_CONFIG=.* CRUSH_GLOBAL_DATA=", strings.Join(o.env, " "))
}

// What a program makes in its own directory nobody obeys later: the true one is not
// written, and the one in its place goes. Sessions stay, for each working directory.
func TestADirectoryInThePlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	home, state := t.TempDir(), t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".gemini", "tmp", "older"), 0o700))
	for _, name := range []string{"settings.json", "oauth_creds.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".gemini", name), []byte("mine"), 0o600))
	}
	of := func(cwd string) (dir string, o ownPlaces) {
		o, err := own([]string{"npx", "-y", "@google/gemini-cli@0.61.0", "--acp"}, cwd, t.TempDir(), state, env)
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(home, ".gemini", "oauth_creds.json")}, o.files)
		require.Len(t, o.dirs, 1)
		require.Equal(t, state, filepath.Dir(o.dirs[0]))
		require.Equal(t, o.dirs, o.apart)
		require.Empty(t, o.kept)
		base, ok := strings.CutPrefix(o.env[0], "GEMINI_CLI_HOME=")
		require.True(t, ok)
		return filepath.Join(base, ".gemini"), o
	}
	dir, first := of("/one")
	text, err := os.ReadFile(filepath.Join(dir, "settings.json"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	require.NoDirExists(t, filepath.Join(dir, "tmp", "older"), "it has sessions of its own")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp", "chats"), 0o700))
	again, _ := of("/one")
	require.DirExists(t, filepath.Join(again, "tmp", "chats"))
	other, _ := of("/other")
	require.NoDirExists(t, filepath.Join(other, "tmp", "chats"))

	// What it puts in the place of a directory leads nowhere.
	require.NoError(t, os.RemoveAll(filepath.Join(first.dirs[0], "tmp")))
	require.NoError(t, os.Symlink(home, filepath.Join(first.dirs[0], "tmp")))
	dir, _ = of("/one")
	require.NoDirExists(t, filepath.Join(dir, "tmp", ".gemini"))

	o, err := own([]string{"hermes"}, "/one", t.TempDir(), state, env)
	require.NoError(t, err)
	require.Equal(t, o.env, o.kept, "we look into its sessions")
	require.FileExists(t, filepath.Join(o.dirs[0], "state.db"))
}

func TestWithoutSnapshots(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"": `{"snapshot":false}`, "null": `{"snapshot":false}`, `{"model":"a/b","snapshot":true}`: `{"model":"a/b","snapshot":false}`} {
		got, err := withoutSnapshots(content)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := withoutSnapshots("[")
	require.ErrorContains(t, err, "OPENCODE_CONFIG_CONTENT")
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

// What a session's shells obey is written by that session alone, and goes with the step.
func TestADirectoryOfTheSessionsOwn(t *testing.T) {
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
