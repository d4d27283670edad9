//go:build unix

package tools

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

func TestFileToolsKeepOut(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{
		".git/config": "[core]\n", ".workflow/x.yaml": "name: x\n", "keys/id": "needle\n", "keys/public": "needle\n", "src/f": "needle\n", "token": "needle\n",
	})
	at := func(name string) string { return filepath.Join(w.real, name) }
	require.NoError(t, os.Symlink("../.git", at("src/way")))
	require.NoError(t, os.Symlink("../keys", at("src/keys")))
	w.Limit(offlimits.New(offlimits.Options{Dir: w.real, Hide: []string{"keys", "token"}, AllowRead: []string{"keys/public"}}))

	for _, name := range []string{".git/config", ".git/hooks/pre-commit", "src/way/config", ".workflow/new.yaml", ".uwf/config.yaml", "sub/.GIT/config", "keys/new", "token", "keys/id"} {
		prosetest.Text(t, call(t, r, "write_file", args{"path": name, "content": "evil"}), name)
	}
	prosetest.Text(t, call(t, r, "edit_file", args{"path": ".git/config", "old_string": "core", "new_string": "x"}))
	require.Contains(t, call(t, r, "read_file", args{"path": ".git/config"}), "[core]")
	for _, name := range []string{"keys/id", "src/keys/id", "token"} {
		prosetest.Text(t, call(t, r, "read_file", args{"path": name}), name)
	}
	prosetest.Text(t, call(t, r, "list_dir", args{"path": "keys"}))
	require.NotContains(t, call(t, r, "list_dir", args{"path": ".", "depth": 3.0}), "id")
	require.NoError(t, r.Add(Grep(w)))
	require.NoError(t, r.Add(Glob(w)))
	found := call(t, r, "grep", args{"pattern": "needle"})
	require.Contains(t, found, "src/f")
	require.NotContains(t, found, "token")
	require.NotContains(t, found, "keys/id")
	require.NotContains(t, call(t, r, "glob", args{"pattern": "**/id"}), "keys/id")
	require.Contains(t, call(t, r, "read_file", args{"path": "keys/public"}), "needle")
	prosetest.Text(t, call(t, r, "write_file", args{"path": "Makefile", "content": "all:\n"}))
}

// A directory that becomes a link between the check and the write is not followed.
func TestADirectoryThatBecomesALink(t *testing.T) {
	t.Parallel()
	w, _ := space(t, map[string]string{".git/hooks/x": "mine\n", "d/x": "text\n"})
	require.NoError(t, os.RemoveAll(filepath.Join(w.real, "d")))
	require.NoError(t, os.Symlink(".git/hooks", filepath.Join(w.real, "d")))
	require.ErrorIs(t, w.replace("d/x", []byte("evil"), nil), errChanged)
	require.Equal(t, "mine\n", content(t, w, ".git/hooks/x"))
}

func TestWhatCommandsMustNotChangeIsPutBack(t *testing.T) {
	t.Parallel()
	var said []string
	w, r := commands(t, Commands{Shell: true, Warn: func(text string) { said = append(said, text) }})
	git(t, w.real, "init", "-q")
	text := call(t, r, "run_command", args{"command": "echo id > .git/hooks/pre-commit; git config core.fsmonitor id; echo done"})
	prosetest.Text(t, text, text)
	prosetest.Text(t, said)
	require.NoFileExists(t, filepath.Join(w.real, ".git/hooks/pre-commit"))
	require.Equal(t, "[exit 0]", call(t, r, "run_command", args{"command": "git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x"}))
}

func TestCommandsDoNotSeeSockets(t *testing.T) {
	t.Parallel()
	env := CommandEnv([]string{"SSH_AUTH_SOCK=/x", "DOCKER_HOST=x", "XDG_RUNTIME_DIR=/run/user/1", "GPG_AGENT_INFO=x", "VSCODE_IPC_HOOK_CLI=x", "TMUX=x", "GOPATH=x"}, &secret.Set{}, []string{"TMUX"})
	require.Equal(t, []string{"TMUX=x", "GOPATH=x"}, env[:2])
}
