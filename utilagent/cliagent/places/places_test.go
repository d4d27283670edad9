package places

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwnPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	of := func(words ...string) (dirs, files []string) {
		o, err := Of(words, "/work/my.dir", func(name string) string { return env[name] })
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

// Known programs may write only the files that they need, by name, and files that make their next start run
// something are restored.
func TestNoOwnDirectoryIsWrittenWhole(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	vars := map[string]string{"HOME": home, "XDG_DATA_HOME": filepath.Join(home, "data")}
	env := func(name string) string { return vars[name] }
	for _, program := range []string{"claude", "codex", "gemini", "qwen", "hermes", "copilot", "opencode", "goose", "crush", "amp", "cursor-agent"} {
		o, err := Of([]string{program}, "/work", env)
		require.NoError(t, err)
		require.NotEmpty(t, o.Reads)
		for _, dir := range o.Dirs {
			if dir == filepath.Join(home, ".local/state/opencode") || !slices.Contains(o.Reads, dir) {
				continue
			}
			real, err := filepath.EvalSymlinks(dir)
			require.NoError(t, err)
			require.Contains(t, Obeyed([]string{program}, env), real, "%s may write all of %s", program, dir)
		}
	}
}

// A program whose user has no directory for it yet writes its login and its session to a new one, and its own file can
// be as large as a session.
func TestFirstStepWithAProgram(t *testing.T) {
	t.Parallel()
	home, kept := t.TempDir(), t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home}[name] }
	large := make([]byte, maxLogin+1)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), large, 0o600))
	l, err := Over([]string{"claude"}, "/work", t.TempDir(), kept, env)
	require.NoError(t, err)
	upper := filepath.Join(kept, keyOf(filepath.Join(home, ".claude")), upperDir)
	require.NoError(t, os.MkdirAll(filepath.Join(upper, "projects/-work"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(upper, ".credentials.json"), []byte("new"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(upper, "projects/-work/s.jsonl"), []byte("one"), 0o600))
	require.NoError(t, l.CopyBack([]string{"s"}))
	for name, want := range map[string]string{".credentials.json": "new", "projects/-work/s.jsonl": "one"} {
		text, err := os.ReadFile(filepath.Join(home, ".claude", name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}
