package offlimits_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// put writes files below a resolved directory and returns it.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, text := range files {
		full := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	return dir
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	dir := put(t, map[string]string{".git/hooks/x": "", ".workflow/x": ""})
	var none offlimits.List
	for _, name := range []string{
		".git", ".git/config", "a/.git/hooks/pre-commit", ".GIT/config", ".git./config", ".git /config", ".git::$INDEX_ALLOCATION/config",
		"GIT~1/config", ".g\u200cit/config", ".workflow/x.yaml", ".workflows/x.yaml", "sub/.Workflow/x", ".uwf/config.yaml", "a/.uwf", ".claude/settings.local.json", "a/.MCP.json", ".gemini/settings.json", ".opencode/x", "opencode.json", ".codex/config.toml", ".cursor/mcp.json",
		"crush.json", "a/.crush.json", ".crush/crush.json", ".amp/settings.json", ".hermes/config.yaml", ".copilot/mcp-config.json", ".agents/skills/x/SKILL.md", ".aider.conf.yml",
		".vscode/mcp.json", "a/.VSCode/MCP.json", ".github/mcp.json", ".github/hooks/x.json", ".github/copilot/settings.json", ".kiro/settings/mcp.json", ".kiro/hooks/x", ".roo/mcp.json",
		".factory/mcp.json", ".zed/settings.json", ".windsurf/mcp_config.json", "a/.any/mcp.json", ".iflow/settings.json", ".hg/hgrc", "a/.hg/store/x", ".jj/repo/config.toml", ".sl/config", ".pijul/config",
	} {
		prosetest.Error(t, none.Write(dir, filepath.Join(dir, name)), name)
		require.NoError(t, none.Read(dir, filepath.Join(dir, name)), name)
	}
	for _, name := range []string{".gitignore", ".github/workflows/ci.yml", "git/config", "Makefile", ".envrc", "workflow/x.yaml", ".uwfx", "a.git/config", ".", ".vscode/settings.json", "x.vscode/mcp.json", "mcp.json", "docs/hooks.json", "hooks/x", ".github/ISSUE_TEMPLATE/x.md", ".kiro/specs/x.md", ".goosehints", "AGENTS.md", ".crush/logs/x"} {
		require.NoError(t, none.Write(dir, filepath.Join(dir, name)), name)
	}
	allowed := offlimits.New(offlimits.Options{Dir: dir, AllowWrite: []string{".git/hooks", ".workflow", "."}})
	require.NoError(t, allowed.Write(dir, filepath.Join(dir, ".git/hooks/pre-commit")))
	require.NoError(t, allowed.Write(dir, filepath.Join(dir, ".workflow/new.yaml")))
	require.Error(t, allowed.Write(dir, filepath.Join(dir, ".git/config")), "the directory above does not allow it")
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	home := put(t, map[string]string{
		".ssh/id": "", ".ssh/config": "", ".config/gh/hosts.yml": "", ".config/other": "", ".npmrc": "registry=https://example.org\n",
		".uwf/config.yaml": "", ".uwf/threads.yaml": "", "store/f": "", "store/format.json": "", "store/nodes/00/x": "", "store/gc.lock": "", "work/f": "", "mine/f": "", ".netrc": "",
		".config/git/config": "", ".local/bin/x": "", ".nvm/x": "", ".tool/bin/x": "", ".tool/key": "", "dotfiles/x": "", "snap/x": "",
	})
	require.NoError(t, os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(home, "way")))
	require.NoError(t, os.Symlink("dotfiles/x", filepath.Join(home, ".x")))
	at := func(name string) string { return filepath.Join(home, name) }
	o := offlimits.Options{
		UserHome: home, Dir: at("work"), Environ: []string{"PATH=" + at(".tool/bin")}, Home: at(".uwf"), Store: at("store"), Hide: []string{"~/mine", "~/way"}, AllowRead: []string{"~/.ssh/config", "~/.netrc"},
	}
	l := offlimits.New(o)
	require.ElementsMatch(t, []string{at(".uwf"), at("store"), at(".ssh"), at("mine"), at(".config/gh"), at(".config/other"), at(".npmrc"), at(".tool/key"), at("snap")}, l.Hidden())
	for _, name := range []string{".ssh/id", ".uwf/config.yaml", ".uwf/locks/x", "store/f", "store/gc.lock", "mine/f", "mine", ".config/other", ".npmrc"} {
		prosetest.Error(t, l.Read(home, at(name)), name)
		prosetest.Error(t, l.Write(home, at(name)), name)
	}
	for _, name := range []string{".ssh/config", "work/f", ".netrc", ".config/git/config", ".local/bin/x", ".nvm/x", ".tool/bin/x"} {
		require.NoError(t, l.Read(home, at(name)), name)
	}
	for _, name := range []string{".uwf/threads.yaml", "store/format.json", "store/nodes/00/x"} {
		require.NoError(t, l.Read(home, at(name)), "roles read threads: %s", name)
	}
	original := put(t, map[string]string{"cas/0123456789ABC.bin": ""}) // a store without a format file
	require.NoError(t, offlimits.New(offlimits.Options{Home: original, Store: filepath.Join(original, "cas")}).Read(filepath.Dir(original), filepath.Join(original, "cas/0123456789ABC.bin")))
	require.NoError(t, l.Read(at("mine"), at("mine/f")), "a workspace in a hidden place was chosen")

	o.AllowRead = []string{"~"}
	require.Empty(t, offlimits.New(o).Hidden())
}

// A list of files in a home that run later can never be complete. So in a workspace that contains the home,
// file tools write nothing hidden unless the user allows it.
func TestNothingHiddenInAHomeIsWritten(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(home, ".notes"), 0o755))
	l := offlimits.New(offlimits.Options{UserHome: home, Dir: home, AllowWrite: []string{"~/.notes"}})
	for name, may := range map[string]bool{
		".local/lib/python3/site-packages/x.pth": false, ".nvm/nvm.sh": false, ".new": false, ".CSHRC": false,
		"work/file": true, "work/.env": true, ".notes/today": true,
	} {
		require.Equal(t, may, l.Write(home, filepath.Join(home, name)) == nil, name)
	}
	require.NoError(t, l.Read(home, filepath.Join(home, ".nvm/nvm.sh")))
	inside := offlimits.New(offlimits.Options{UserHome: home, Dir: filepath.Join(home, "work")})
	require.NoError(t, inside.Write(filepath.Join(home, "work"), filepath.Join(home, "work/.editorconfig")))
}

// A sandbox that can only deny gets every path except the readable ones.
func TestClosed(t *testing.T) {
	t.Parallel()
	home, uwf := t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(home, ".ssh"), filepath.Join(uwf, "cas", "nodes"), filepath.Join(uwf, "cas", "locks"), filepath.Join(uwf, "runs", "x")} {
		require.NoError(t, os.MkdirAll(name, 0o700))
	}
	for _, name := range []string{"config.yaml", "threads.yaml", "cas/format.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(uwf, filepath.FromSlash(name)), nil, 0o600))
	}
	l := offlimits.New(offlimits.Options{UserHome: home, Home: uwf, Store: filepath.Join(uwf, "cas"), AllowRead: []string{filepath.Join(uwf, "runs", "x")}})
	require.ElementsMatch(t, []string{filepath.Join(home, ".ssh"), filepath.Join(uwf, "cas", "locks"), filepath.Join(uwf, "config.yaml")}, l.Closed())
}

// The paths are one argument of a program, so their number is bounded. A directory that is too large to split is closed,
// never left open.
func TestTooManyToClose(t *testing.T) {
	t.Parallel()
	uwf, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for n := range 3000 {
		require.NoError(t, os.MkdirAll(filepath.Join(uwf, "artifacts", fmt.Sprintf("%026d", n)), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(uwf, "sessions"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(uwf, "threads.yaml"), nil, 0o600))
	l := offlimits.New(offlimits.Options{Home: uwf, AllowRead: []string{filepath.Join(uwf, "artifacts", fmt.Sprintf("%026d", 5))}})
	require.ElementsMatch(t, []string{filepath.Join(uwf, "artifacts"), filepath.Join(uwf, "sessions")}, l.Closed())
}
