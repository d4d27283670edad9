package box_test

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/box/inside"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// The test binary plays uwf-box, which has the first id of its namespace.
func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		os.Exit(inside.Main(os.Stderr))
	}
	if len(os.Args) == 3 && os.Args[1] == "ways-out" {
		waysOut(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// space is a home with a repository in it.
type space struct {
	*testing.T
	home, work, state, tmp string
	program                string // "": the shell
	request                box.Request
}

func newSpace(t *testing.T) *space {
	t.Helper()
	real, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := &space{T: t, home: filepath.Join(real, "home"), state: filepath.Join(real, "state"), tmp: filepath.Join(real, "tmp")}
	s.work = filepath.Join(s.home, "src", "work")
	for _, dir := range []string{s.work, s.state, s.tmp, filepath.Join(s.home, ".ssh"), filepath.Join(s.home, ".local/bin"), filepath.Join(s.home, "docs")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	s.write(".ssh/id", "key")
	s.write(".local/bin/tool", "#!/bin/sh\necho tool\n")
	s.write("docs/a", "text")
	s.git("init", "-q", "-b", "main")
	s.git("commit", "-q", "--allow-empty", "-m", "first")
	s.request = box.Request{
		Workspace: s.work, Home: s.home, Temporary: s.tmp, State: s.state, Environ: os.Environ(), Now: time.Now,
		Off: offlimits.New(offlimits.Options{UserHome: s.home, Dir: s.work}),
	}
	return s
}

func (s *space) write(name, text string) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.home, name), []byte(text), 0o755))
}

func (s *space) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
}

func (s *space) git(args ...string) string {
	s.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = s.work, s.env()
	out, err := cmd.CombinedOutput()
	require.NoError(s, err, "%s", out)
	return string(out)
}

// run runs a script of the shell, and what is to be done at its end.
func (s *space) run(script string) (out string, status proc.Status, said []string) {
	s.Helper()
	exe, err := os.Executable()
	require.NoError(s, err)
	read, write, err := os.Pipe()
	require.NoError(s, err)
	cmd, run, err := s.request.Prepare(exe, proc.Command{
		Path: cmp.Or(s.program, "/bin/sh"), Args: []string{"-c", script}, Dir: s.work, Env: s.env(), Stdout: write, Stderr: write,
	})
	require.NoError(s, err)
	child, err := proc.Start(cmd)
	require.NoError(s, write.Close())
	if why := (*proc.BoxError)(nil); err != nil {
		require.ErrorAs(s, err, &why)
		if why.Stage == "namespaces" {
			s.Skipf("no namespaces here: %v", why)
		}
	}
	require.NoError(s, err)
	text, err := io.ReadAll(read)
	require.NoError(s, err)
	status, err = child.Wait(context.Background(), time.Second)
	require.NoError(s, err)
	said, err = run.End(s.Context())
	require.NoError(s, err)
	return string(text), status, said
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	out, status, _ := s.run(`echo out; pwd; echo $HOME; id -u; ls -A $HOME; cat $HOME/.ssh/id; tool; ~/.local/bin/tool; cat ~/docs/a; echo x > made; ls /dev /tmp /run; mount | head -50; git status --short; git config x.y z; git commit -q --allow-empty -m second && git log --oneline; echo x > .git/hooks/pre-commit; cat .git/config; mv .git g; mv .git/objects o; exit 3`)
	t.Log(out, strings.Count(out, "\n"))
	require.Equal(t, 3, status.Code)
}

// A program can make a sandbox of its own, and cannot undo ours from there.
func TestNest(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.request.Nest = true
	out, _, _ := s.run(`write='p=$(cat $0/sys/kernel/core_pattern) && echo "$p" > $0/sys/kernel/core_pattern && echo undone'
		unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo nested'
		unshare -Urm sh -c 'mount -o remount,rw / && echo undone'
		unshare -Urm sh -c 'mount -o remount,rw,bind .git/hooks && echo undone'
		unshare -Urm sh -c 'umount .git/hooks && echo undone'
		unshare -Urm sh -c 'umount -l ~ && echo undone'
		unshare -Urm sh -c 'mount --rbind / /mnt && echo x > /mnt/etc/uwf-box-test && echo undone'
		unshare -Urmpf sh -c 'mount -t proc proc /mnt && sh -c "$0" /mnt' "$write"
		sh -c "$write" /proc`)
	require.Contains(t, out, "nested\n")
	require.NotContains(t, out, "undone\n")
}

// What is written to a covered directory stays on the cover.
func TestOverlay(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	own, upper, work := filepath.Join(s.home, ".own"), filepath.Join(s.state, "up,p:er"), filepath.Join(s.state, "work")
	for _, dir := range []string{own, upper, work} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	s.write(".own/a", "old\n")
	s.request.Mounts = []plan.Mount{{Path: own, Kind: plan.Overlay, Upper: upper, Work: work}}
	out, _, _ := s.run("cd ~/.own && cat a && echo new > a && cat a && rm a && echo x > b")
	require.NoError(t, os.Chmod(filepath.Join(work, "work"), 0o700))
	require.Equal(t, "old\nnew\n", out)
	text, err := os.ReadFile(filepath.Join(own, "a"))
	require.NoError(t, err)
	require.Equal(t, "old\n", string(text))
	require.NoFileExists(t, filepath.Join(own, "b"))
	require.FileExists(t, filepath.Join(upper, "b"))
}

// A program finds what belongs to it, where other programs' files are not to be seen.
func TestProgramFindsItsOwn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, dir := range []string{".a/node_modules/tool/bin", ".b/bin", ".c/venv/bin", ".c/venv/lib", ".d"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.home, dir), 0o755))
	}
	s.write(".a/node_modules/other", "package\n")
	s.write(".c/venv/lib/module", "module\n")
	s.write(".d/secret", "secret\n")
	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(s.home, ".c/venv/bin/python")))
	s.write(".a/node_modules/tool/bin/tool.js", "#!"+s.home+"/.c/venv/bin/python\ncd ~ && cat .a/node_modules/other .c/venv/lib/module .d/secret; exit 0\n")
	require.NoError(t, os.Symlink("../../.a/node_modules/tool/bin/tool.js", filepath.Join(s.home, ".b/bin/tool")))
	s.program = filepath.Join(s.home, ".b/bin/tool")
	out, status, _ := s.run("")
	require.Zero(t, status.Code)
	require.Contains(t, out, "package\nmodule\n")
	require.NotContains(t, out, "secret\n")
}
