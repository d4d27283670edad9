package places

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwnPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	of := func(words ...string) (dirs, files []string) {
		o, err := Of(words, "/work/my.dir", filepath.Join(home, "tmp"), filepath.Join(home, "state"), func(name string) string { return env[name] })
		require.NoError(t, err)
		return o.Dirs, o.Files
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
	obeys := Obeyed([]string{"claude"}, func(name string) string { return env[name] })
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
		o, err := Of([]string{program}, "/work", t.TempDir(), filepath.Join(home, "apart", program), env)
		require.NoError(t, err)
		require.NotEmpty(t, o.Reads)
		for _, dir := range o.Dirs {
			known := dir == filepath.Join(home, ".local/state/opencode") || dir == filepath.Join(home, ".cursor") // docs/agents.md says so
			require.True(t, known || !slices.Contains(o.Reads, dir), "%s may write all of %s", program, dir)
		}
	}
	o, err := Of([]string{"crush", "run"}, "/work", t.TempDir(), filepath.Join(home, "apart"), env)
	require.NoError(t, err)
	require.Contains(t, o.Reads, filepath.Join(home, "data/crush"))
	require.Regexp(t, "^CRUSH_GLOBAL_CONFIG=.* CRUSH_GLOBAL_DATA=", strings.Join(o.Env, " "))
}

// What a program makes in its own directory nobody obeys later: the true one is not
// written, and the one in its place goes. Sessions stay, for each working directory.
func TestADirectoryInThePlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	home, state := t.TempDir(), t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".gemini", "tmp", "older"), 0o700))
	// A list that a run by hand has left, its lock, and what such a run left half-written.
	for _, name := range []string{"settings.json", "oauth_creds.json", "projects.json", "projects.json.x.tmp", "projects.json.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".gemini", name), []byte("mine"), 0o600))
	}
	of := func(cwd string) (dir string, o Owned) {
		o, err := Of([]string{"npx", "-y", "@google/gemini-cli@0.61.0", "--acp"}, cwd, t.TempDir(), state, env)
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(home, ".gemini", "oauth_creds.json")}, o.Files)
		require.Len(t, o.Dirs, 1)
		require.Equal(t, state, filepath.Dir(o.Dirs[0]))
		require.Equal(t, o.Dirs, o.Apart)
		require.Empty(t, o.Kept)
		base, ok := strings.CutPrefix(o.Env[0], "GEMINI_CLI_HOME=")
		require.True(t, ok)
		return filepath.Join(base, ".gemini"), o
	}
	dir, first := of("/one")
	text, err := os.ReadFile(filepath.Join(dir, "settings.json"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
	require.NoDirExists(t, filepath.Join(dir, "tmp", "older"), "it has sessions of its own")
	own, err := filepath.Glob(filepath.Join(dir, "projects.*"))
	require.NoError(t, err)
	require.Empty(t, own, "its lock would lie beside the true list, where the program cannot write")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp", "chats"), 0o700))
	again, _ := of("/one")
	require.DirExists(t, filepath.Join(again, "tmp", "chats"))
	other, _ := of("/other")
	require.NoDirExists(t, filepath.Join(other, "tmp", "chats"))

	// What it puts in the place of a directory leads nowhere.
	require.NoError(t, os.RemoveAll(filepath.Join(first.Dirs[0], "tmp")))
	require.NoError(t, os.Symlink(home, filepath.Join(first.Dirs[0], "tmp")))
	dir, _ = of("/one")
	require.NoDirExists(t, filepath.Join(dir, "tmp", ".gemini"))

	require.NoError(t, os.MkdirAll(filepath.Join(home, ".hermes"), 0o700))
	for _, name := range []string{"state.db", "state.db-wal", "config.yaml", "auth.lock"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".hermes", name), []byte("mine"), 0o600))
	}
	o, err := Of([]string{"hermes"}, "/one", t.TempDir(), state, env)
	require.NoError(t, err)
	require.Equal(t, o.Env, o.Kept, "we look into its sessions")
	require.FileExists(t, filepath.Join(o.Dirs[0], "state.db"))
	_, moved, _ := strings.Cut(o.Env[0], "=")
	require.FileExists(t, filepath.Join(moved, "config.yaml"))
	require.NoFileExists(t, filepath.Join(moved, "state.db-wal"), "the journal of another database")
	require.NoFileExists(t, filepath.Join(moved, "auth.lock"), "it could not write the user's")
}
