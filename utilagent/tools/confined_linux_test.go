package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// self copies this test binary to a name that is not a test's.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "agent")
	require.NoError(t, os.Symlink(exe, link))
	return link
}

func TestConfinedCommandsStayInside(t *testing.T) {
	t.Parallel()
	c := Commands{Shell: true, Exe: self(t)}
	w, r := commands(t, c)
	if confine.Level() == 0 {
		require.Contains(t, c.Confinement(), "none")
		return
	}
	require.Contains(t, c.Confinement(), "landlock ")
	require.Equal(t, "[exit 0]", call(t, r, "run_command", args{"command": "echo a > sub/new && mv sub/new moved && echo b > $TMPDIR/x"}))
	secret := filepath.Join(filepath.Dir(w.Dir()), "secret.txt")
	text := call(t, r, "run_command", args{"command": "echo x > " + secret})
	prosetest.Text(t, text)
	b, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))
	require.Contains(t, call(t, r, "run_command", args{"command": "exit 7"}), "[exit 7]")
}

// Commits in a linked work tree go to the repository elsewhere.
func TestLinkedWorkTreeCanCommit(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	repo, tree := filepath.Join(base, "repo"), filepath.Join(base, "tree")
	require.NoError(t, os.Mkdir(repo, 0o755))
	git(t, repo, "init", "-q")
	git(t, repo, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, repo, "worktree", "add", "-q", tree)
	w, err := OpenWorkspace(tree)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	require.Equal(t, []string{filepath.Join(w.real, "../repo/.git")}, offlimits.GitDirs(w.real))

	// A repository that does not refer back to this work tree is not opened.
	fake := filepath.Join(base, "fake")
	require.NoError(t, os.Mkdir(fake, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(fake, ".git"), []byte("gitdir: "+repo+"/.git/worktrees/tree\n"), 0o644))
	f, err := OpenWorkspace(fake)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	require.Empty(t, offlimits.GitDirs(f.real))
}

func TestCommandsThatMustBeConfinedDoNotRunOtherwise(t *testing.T) {
	t.Parallel()
	_, r := commands(t, Commands{Shell: true, MustConfine: true})
	prosetest.Text(t, call(t, r, "run_command", args{"command": "true"}))
}

// Everyday project tools work under all restrictions.
func TestEverydayWorkIsPossible(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, name := range []string{".ssh", ".cache"} {
		require.NoError(t, os.Mkdir(filepath.Join(home, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, ".ssh", "id"), []byte("key"), 0o600))
	w, r := space(t, map[string]string{
		"go.mod": "module example.org/x\n\ngo 1.26\n", "x.go": "package x\n\nconst X = 1\n", "package.json": `{"name":"x","version":"1.0.0","dependencies":{"y":"file:./y"}}`,
		"y/package.json": `{"name":"y","version":"1.0.0"}`,
	})
	environ := append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=")
	own, dirs := w.Caches([]string{"HOME=" + home}, time.Now())
	require.NotEmpty(t, own)
	w.Limit(offlimits.New(offlimits.Options{UserHome: home, Dir: w.real}))
	require.NoError(t, r.Add(RunCommand(w, Commands{
		Shell: true, Exe: self(t), Env: append(CommandEnv(environ, &secret.Set{}, nil), own...), Writable: dirs,
	})))
	for _, line := range []string{
		"git init -q && git add . && git -c user.name=a -c user.email=a@example.org commit -q -m one && git gc -q && git status --short",
		"command -v go >/dev/null || exit 0; GOFLAGS=-mod=mod go build ./...",
		"command -v npm >/dev/null || exit 0; npm install --offline --no-audit --no-fund --silent && test -e node_modules/y",
		"mkfifo p && (echo x > p &) && cat p >/dev/null && chmod 600 p && touch -d 2001-01-01 p && ln x.go l && mv l y/ && rm p",
	} {
		require.Contains(t, call(t, r, "run_command", args{"command": line, "timeout": 300.0}), "[exit 0]", line)
	}
	if confine.Level() > 0 {
		require.NotContains(t, call(t, r, "run_command", args{"command": "cat " + home + "/.ssh/id"}), "[exit 0]")
	}
}

// The prompt asks roles to read threads with uwf, so heads and nodes are readable to commands. Keys and locks
// are not.
func TestCommandsReadThreads(t *testing.T) {
	t.Parallel()
	w, r := space(t, nil)
	home := t.TempDir()
	for name, text := range map[string]string{
		"threads.yaml": "heads\n", "history.jsonl": "history\n", "cas/format.json": "format\n", "cas/nodes/00/x.bin": "node\n",
		"config.yaml": "key", ".env": "key", "sessions/s": "key", "runs/r/stdin": "key", "locks/l": "key", "cas/gc.lock": "key",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o600))
	}
	w.Limit(offlimits.New(offlimits.Options{Dir: w.real, Home: home, Store: filepath.Join(home, "cas")}))
	require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: os.Environ()})))
	text := call(t, r, "run_command", args{"command": "cd " + home + " && cat threads.yaml history.jsonl cas/format.json cas/nodes/00/x.bin"})
	require.Equal(t, "heads\nhistory\nformat\nnode\n[exit 0]", text)
	if confine.Level() > 0 {
		text = call(t, r, "run_command", args{"command": "cd " + home + "; for f in config.yaml .env sessions/s runs/r/stdin locks/l cas/gc.lock; do cat $f 2>/dev/null; done; echo x 2>/dev/null > threads.yaml; cat threads.yaml"})
		require.NotContains(t, text, "key")
		require.Contains(t, text, "heads\n")
	}
}

// In a home directory, hidden names and directories in the PATH are read-only, even if they don't exist,
// because they can contain what the owner's shell, session or git starts. Hidden names are readable only if
// programs need them.
func TestWhatStartsProgramsIsNotWritten(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{".bashrc": "mine\n", "dotfiles/zshrc": "mine\n", ".config/app/f": "", "src/f": "", ".local/share/f": "", "bin/tool": "mine\n", "sdk/bin/tool": "mine\n", "dotfiles/app": "mine\n",
		".config/gh/hosts.yml": "key", ".config/named": "named\n", ".tool/lib/x": "mine\n", ".cache/own/f": ""})
	require.NoError(t, os.Symlink("dotfiles/zshrc", filepath.Join(w.real, ".zshrc")))
	require.NoError(t, os.Symlink("../../dotfiles/app", filepath.Join(w.real, ".config/app/link")))
	w.Limit(offlimits.New(offlimits.Options{UserHome: w.real, Dir: w.real, Environ: []string{"PATH=/bin" + string(filepath.ListSeparator) + filepath.Join(w.real, "sdk/bin")}}))
	require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: os.Environ(), Writable: []string{filepath.Join(w.real, ".cache/own")}, Readable: []string{filepath.Join(w.real, ".config/named")}})))
	off := []string{".bashrc", ".zshrc", "dotfiles/zshrc", ".gitconfig", ".config/git/config", ".config/autostart/x.desktop", ".config/systemd/user/x.service",
		".ssh/authorized_keys", ".aws/credentials", ".local/bin/ls", "bin/tool", "sdk/bin/tool", ".config/app/f",
		".local/share/f", ".tool/lib/x", ".new", ".local/lib/python3/site-packages/x.pth"}
	for _, name := range off {
		prosetest.Text(t, call(t, r, "write_file", args{"path": name, "content": "x"}), name)
		if confine.Level() > 0 {
			text := call(t, r, "run_command", args{"command": "mkdir -p $(dirname " + name + "); echo x > " + name})
			require.NotContains(t, text, "[exit 0]", name)
		}
	}
	text := call(t, r, "run_command", args{"command": "cat .zshrc bin/tool && echo x > src/new && echo x > .cache/own/f; cat .bashrc .tool/lib/x .config/gh/hosts.yml .config/named; true"})
	if confine.Level() > 0 {
		require.Equal(t, 2, strings.Count(text, "mine\n"), text)
		require.NotContains(t, text, "key")
		require.Contains(t, text, "named\n")
		require.FileExists(t, filepath.Join(w.real, "src/new"))
		info, err := os.Stat(filepath.Join(w.real, ".cache/own/f"))
		require.NoError(t, err)
		require.NotZero(t, info.Size())
	}
	require.NotContains(t, call(t, r, "write_file", args{"path": "src/x", "content": "x"}), "Error")
}

// Shells and desktops run files in ~/.cache, such as the prompt of powerlevel10k. Commands write to a private
// cache set there, even if it is created first.
func TestTheUsersCacheIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, files := range []map[string]string{{"f": ""}, {".cache/p10k-instant-prompt-ann.zsh": "mine\n"}} {
		w, r := space(t, files)
		w.Limit(offlimits.New(offlimits.Options{UserHome: w.real, Dir: w.real}))
		env, dirs := w.Caches([]string{"HOME=" + w.real}, time.Now())
		require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: append(os.Environ(), env...), Writable: dirs})))
		prosetest.Text(t, call(t, r, "write_file", args{"path": ".cache/p10k-instant-prompt-ann.zsh", "content": "x"}))
		if confine.Level() > 0 {
			text := call(t, r, "run_command", args{"command": "echo x > $XDG_CACHE_HOME/own && echo ok; for f in .cache/p10k-instant-prompt-ann.zsh .cache/new .cache/uwf/commands/new; do echo x > $f; done"})
			require.Contains(t, text, "ok\n")
			require.Equal(t, 3, strings.Count(text, "ermission denied"), text)
		}
	}
}

// Memory is shared with the user's other programs only if configured, and only in plain files: git would find
// a repository in a directory that stays.
func TestSharedMemory(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	for _, ipc := range []bool{false, true} {
		w, r := space(t, map[string]string{"lib/f": ""})
		require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: os.Environ(), IPC: ipc})))
		shm := "/dev/shm/" + filepath.Base(filepath.Dir(w.real)) + "-x"
		text := call(t, r, "run_command", args{"command": "echo x > " + shm + " && ln " + shm + " " + shm + "2 && rm " + shm + " " + shm + "2 && echo semaphores; mkdir " + shm + "; mv lib " + shm + "; ln -s /tmp " + shm})
		require.Equal(t, ipc, strings.Contains(text, "semaphores\n"), text)
		require.Equal(t, !ipc, strings.Contains(text, "sandbox.sharedMemory in config.yaml"), text)
		require.NoDirExists(t, shm)
		require.NoFileExists(t, shm)
		require.FileExists(t, filepath.Join(w.real, "lib/f"))
	}
}

// The user's git uses a repository in any parent of the current directory, even after following a link. No
// command can plant one outside the workspace and link to it.
func TestNoLinkLeadsToARepositoryOutside(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"lib/f": "", "mine/f": ""})
	require.NoError(t, os.Symlink("mine", filepath.Join(w.real, "before")))
	env, dirs := w.Caches([]string{"HOME=" + t.TempDir()}, time.Now())
	require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: append(os.Environ(), env...), Writable: dirs})))
	if confine.Level() == 0 {
		require.Contains(t, call(t, r, "run_command", args{"command": "ln -s $XDG_CACHE_HOME x"}), "[exit 0]", "nothing is confined")
		return
	}
	plant := `mkdir -p $P/objects $P/refs && echo ref: refs/heads/x > $P/HEAD && printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "id > ~/PWN; false"\n' > $P/config; `
	text := call(t, r, "run_command", args{"command": "P=$XDG_CACHE_HOME/y/.git; " + plant + "mv lib $XDG_CACHE_HOME/y/lib; ln -s $XDG_CACHE_HOME/y/lib lib; ln -s $TMPDIR/later later; mkdir sub; ln -s ../later sub/deep; ln -s mine in; P=$XDG_CACHE_HOME; " + plant})
	for _, told := range []string{"lib", "later"} {
		require.Contains(t, text, told)
	}
	for _, gone := range []string{"lib", "later"} {
		_, err := os.Lstat(filepath.Join(w.real, gone))
		require.ErrorIs(t, err, os.ErrNotExist, gone)
	}
	for _, stays := range []string{"before/f", "in/f"} {
		require.FileExists(t, filepath.Join(w.real, stays))
	}
}
