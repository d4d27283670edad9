package tools

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// goProxy is a directory from which Go can download a module with two versions.
func goProxy(t *testing.T) string {
	t.Helper()
	proxy := t.TempDir()
	at := filepath.Join(proxy, "example.com/lib/@v")
	require.NoError(t, os.MkdirAll(at, 0o755))
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o644))
	}
	for _, version := range []string{"v1.0.0", "v1.1.0"} {
		put(version+".info", `{"Version":"`+version+`"}`)
		put(version+".mod", "module example.com/lib\n")
		f, err := os.Create(filepath.Join(at, version+".zip"))
		require.NoError(t, err)
		z := zip.NewWriter(f)
		for name, text := range map[string]string{"go.mod": "module example.com/lib\n", "l.go": "package lib\n\nconst Said = \"" + version + "\"\n"} {
			entry, err := z.Create("example.com/lib@" + version + "/" + name)
			require.NoError(t, err)
			_, err = entry.Write([]byte(text))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		require.NoError(t, f.Close())
	}
	put("list", "v1.0.0\nv1.1.0\n")
	return "file://" + proxy
}

// Commands can use the user's downloads, even without a network. Their changes don't affect the user's own
// builds, and new versions are found.
func TestCommandsUseTheUsersModulesAndChangeNone(t *testing.T) {
	t.Parallel()
	home, proxy := t.TempDir(), goProxy(t)
	w, r := space(t, map[string]string{
		"go.mod": "module example.org/x\n\ngo 1.20\n\nrequire example.com/lib v1.0.0\n",
		"x.go":   "package x\n\nimport \"example.com/lib\"\n\nconst Said = lib.Said\n",
	})
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".config/go"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".config/go/env"), []byte("GOPRIVATE=example.com\nGONOPROXY=none\n"), 0o644))
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GOFLAGS=-modcacherw -mod=mod", "GOTOOLCHAIN=local", "GOPROXY=" + proxy}
	cmd := exec.CommandContext(t.Context(), "go", "build", "./...") // a library, so that nothing of the standard library is built
	cmd.Dir, cmd.Env = w.Dir(), environ
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	source := filepath.Join(home, "go/pkg/mod/example.com/lib@v1.0.0/l.go")
	was, err := os.ReadFile(source)
	require.NoError(t, err)

	own, dirs := w.Caches(environ, time.Now())
	w.Limit(offlimits.New(offlimits.Options{UserHome: home, Dir: w.real}))
	offline := append(CommandEnv(environ, &secret.Set{}, nil), own...)
	require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true, Exe: self(t), Env: append(offline, "GOPROXY=off"), Writable: dirs})))
	require.Contains(t, call(t, r, "run_command", args{"command": "go build -v ./... && go list -m all", "timeout": 300.0}), "example.com/lib v1.0.0\n[exit 0]")
	if confine.Level() > 0 {
		text := call(t, r, "run_command", args{"command": "cd ~/go/pkg/mod && chmod -R u+w . ; echo 'func init() { panic(0) }' >> example.com/lib@v1.0.0/l.go; cp /bin/sh cache/download/example.com/lib/@v/v1.0.0.zip; mkdir .git"})
		require.Equal(t, 3, strings.Count(text, "ermission denied"), text)
	}
	text := call(t, r, "run_command", args{"command": "cd $(go env GOMODCACHE)/example.com/lib@v1.0.0 && chmod u+w . l.go && echo 'broken' >> l.go && cd - && go build ./..."})
	require.Contains(t, text, "l.go:4", "its own are its own")
	is, err := os.ReadFile(source)
	require.NoError(t, err)
	require.Equal(t, string(was), string(is))

	require.Contains(t, call(t, r, "run_command", args{"command": "GOPROXY=" + proxy + " go get example.com/lib@latest && go build ./... && go list -m all", "timeout": 300.0}), "example.com/lib v1.1.0\n[exit 0]")
	require.NoDirExists(t, filepath.Join(home, "go/pkg/mod/example.com/lib@v1.1.0"))
}

// Commands can write a cache set, but links that they create there are not followed.
func TestASetOfCachesLeadsNowhere(t *testing.T) {
	t.Parallel()
	home, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"go/pkg/mod/cache/download/m/@v/v1.mod", "go/pkg/sumdb/x/latest", ".cargo/config.toml", ".cargo/registry/cache/r/a.crate", ".m2/repository/a/a.jar", ".gradle/wrapper/dists/g/bin/gradle"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte("mine"), 0o644))
	}
	environ := []string{"HOME=" + home}
	env, dirs := CacheSet("commands/x", environ, time.Time{})
	require.Equal(t, []string{filepath.Join(home, ".cache/uwf/commands/x")}, dirs)
	names := variables(env)
	for name, text := range map[string]string{
		names["GOMODCACHE"] + "/cache/download/m/@v/v1.mod": "mine", names["GOPATH"] + "/pkg/sumdb/x/latest": "mine", names["CARGO_HOME"] + "/config.toml": "mine",
		names["CARGO_HOME"] + "/registry/cache/r/a.crate": "mine", dirs[0] + "/m2/a/a.jar": "mine", names["GRADLE_USER_HOME"] + "/wrapper/dists/g/bin/gradle": "mine",
	} {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	require.Equal(t, "-Dmaven.repo.local="+dirs[0]+"/m2", names["MAVEN_OPTS"])

	for _, dir := range []string{"go", "cargo", "m2", "npm", "gradle/wrapper"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dirs[0], dir)))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(dirs[0], dir)))
	}
	CacheSet("commands/x", environ, time.Time{})
	entries, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Empty(t, entries)
}
