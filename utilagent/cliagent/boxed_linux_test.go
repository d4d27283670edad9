package cliagent

import (
	"context"
	"crypto/rand"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	dirs "github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// desk is a user with a workspace and a program.
type desk struct {
	*testing.T
	dir, home, work, exe string
	names                *strings.Replacer // replaces PROJECT by Claude Code's name for the workspace
}

func newDesk(t *testing.T, dir string) *desk {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	d := &desk{T: t, dir: real, home: filepath.Join(real, "home"), work: filepath.Join(real, "home", "work"), exe: filepath.Join(real, "bin", "uwf-claude-code")}
	d.names = strings.NewReplacer("PROJECT", "projects/"+regexp.MustCompile("[^a-zA-Z0-9]").ReplaceAllString(d.work, "-"))
	self, err := os.Executable()
	require.NoError(t, err)
	for _, dir := range []string{d.work, filepath.Dir(d.exe), filepath.Join(d.home, d.names.Replace(".claude/PROJECT")), filepath.Join(d.home, ".hidden/bin")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.Symlink(self, filepath.Join(filepath.Dir(d.exe), box.Program)))
	d.write(".claude/settings.json", "{}")
	d.write(".claude/.credentials.json", "old")
	d.write(".claude/PROJECT/s1.jsonl", "one\n")
	d.write(".claude.json", `{"user":1}`)
	d.write(".bashrc", "true\n")
	if err := box.Probe(filepath.Join(filepath.Dir(d.exe), box.Program)); err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	return d
}

func (d *desk) write(name, text string) {
	d.Helper()
	require.NoError(d, os.WriteFile(filepath.Join(d.home, d.names.Replace(name)), []byte(text), 0o600))
}

// runner returns the runner of a step.
func (d *desk) runner(thread string) *runner {
	r := &runner{
		adapter: Adapter{Name: "claude-code", Program: "claude"}, cwd: d.work, req: &agentkit.Request{Thread: thread}, ctx: d.Context(),
		env:      env.Env{Environ: []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH")}, Exe: d.exe, Stderr: io.Discard, Now: time.Now, Rand: rand.Reader},
		around:   &runenv.Run{Dirs: dirs.Dirs{Home: filepath.Join(d.home, ".uwf"), Store: filepath.Join(d.home, ".uwf", "cas")}},
		sessions: sessions.Dir(filepath.Join(d.home, ".uwf", "sessions", "claude-code")),
	}
	r.permission = Bypass
	return r
}

// begin starts a script as the program.
func (d *desk) begin(r *runner, script string) *Process {
	d.Helper()
	path := filepath.Join(d.home, ".hidden", "bin", "claude")
	programtest.Write(d, path, "#!/bin/sh\n"+d.names.Replace(script))
	var err error
	r.confinement, err = r.confined()
	require.NoError(d, err)
	p, err := start(launch{path: path, inv: Invocation{Dir: d.work}, env: r.env.Environ, marker: "MARK=" + d.work, confinement: r.confinement, stdout: io.Discard, stderr: io.Discard})
	require.NoError(d, err)
	return p
}

// step runs a script as the program of a step and returns its output.
func (d *desk) step(r *runner, script string) string {
	d.Helper()
	p := d.begin(r, script)
	out, err := io.ReadAll(p.stdout)
	require.NoError(d, err)
	exit, err := p.Wait()
	require.NoError(d, err)
	require.Zero(d, exit.Code, exit.Stderr)
	require.NoError(d, r.confinement.close())
	return string(out)
}

// files returns the files in the home, except uwf's and caches.
func (d *desk) files() map[string]string {
	d.Helper()
	found := map[string]string{}
	require.NoError(d, filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (e.Name() == ".uwf" || e.Name() == ".cache" || e.Name() == ".hidden") {
			return fs.SkipDir
		}
		if err == nil && e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			require.NoError(d, err)
			found[strings.TrimPrefix(path, d.home+"/")] = string(text)
		}
		return err
	}))
	return found
}

// A program that writes everywhere changes only its login and its session among the user's files.
func TestProgramChangesNothingOfItsUsers(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	want := d.files()
	r := d.runner("A")
	r.used = []string{"s1", "s2"}
	out := d.step(r, `cd ~ && cat .claude.json .claude/settings.json && echo x >> .bashrc; echo x > .profile
echo '{"evil":1}' > .claude.json; cp .claude.json t && mv t .claude.json
cd .claude && echo new > .credentials.json && echo x > settings.json && mkdir -p hooks && echo x > hooks/h && rm -rf projects/q
echo two >> PROJECT/s1.jsonl; mkdir projects/n && echo x > projects/n/s2.jsonl; echo first > PROJECT/s2.jsonl; echo x > PROJECT/s3.jsonl
ln -s ~/.bashrc PROJECT/s4.jsonl; echo made > ~/work/made`)
	require.Equal(t, `{"user":1}{}`, out)
	want[".claude/.credentials.json"], want[d.names.Replace(".claude/PROJECT/s1.jsonl")] = "new\n", "one\ntwo\n"
	want[d.names.Replace(".claude/PROJECT/s2.jsonl")], want["work/made"] = "first\n", "made\n"
	require.Equal(t, want, d.files())
	info, err := os.Stat(filepath.Join(d.home, ".claude/.credentials.json"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	require.Equal(t, "x\nnew\none\ntwo\n", d.step(d.runner("A"), "cd ~/.claude && cat settings.json .credentials.json PROJECT/s1.jsonl"), "the thread goes on")
	require.Equal(t, "{}new\n", d.step(d.runner("B"), "cd ~/.claude && cat settings.json .credentials.json"), "others do not see it")
	fork := d.runner("C")
	fork.req.SessionID = "s1"
	require.Equal(t, "{}one\ntwo\n", d.step(fork, "cd ~/.claude && cat settings.json PROJECT/s1.jsonl"), "a fork finds the session")
	require.Equal(t, want, d.files())
}

// Concurrent changes by the user are not lost.
func TestUserContinuesSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	r := d.runner("A")
	r.used = []string{"s1"}
	p := d.begin(r, "echo two >> ~/.claude/PROJECT/s1.jsonl; echo old > ~/.claude/.credentials.json; echo ready; read x")
	_, err := p.ReadLine()
	require.NoError(t, err)
	d.write(".claude/PROJECT/s1.jsonl", "one\nof the user\n")
	d.write(".claude/.credentials.json", "newer")
	_ = p.Stdin().Close()
	_, err = p.Wait()
	require.NoError(t, err)
	require.ErrorContains(t, r.confinement.close(), "s1.jsonl")
	require.Equal(t, "one\nof the user\n", d.files()[d.names.Replace(".claude/PROJECT/s1.jsonl")])
	require.Equal(t, "newer", d.files()[".claude/.credentials.json"])
	require.Equal(t, "one\ntwo\nnewer", d.step(d.runner("A"), "cd ~/.claude; cat PROJECT/s1.jsonl .credentials.json"))
}

// The user's settings apply in namespaces as well.
func TestSettingsCountInNamespaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(d.home, ".keys"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(d.home, "notes"), 0o755))
	d.write(".keys/k", "key\n")
	d.write("notes/n", "note\n")
	d.write("work/f", "file\n")
	const script = "cd ~; cat .keys/k || echo no key; cat notes/n || echo no note; echo x > work/g || echo read-only; echo x > .claude/skill || true; echo x > notes/m || echo no; cat work/f"
	require.Equal(t, "no key\nnote\nno\nfile\n", d.step(d.runner("A"), script))
	require.FileExists(t, filepath.Join(d.work, "g"))
	r := d.runner("B")
	r.permission = Readonly
	r.sandbox.AllowRead, r.sandbox.DenyRead, r.sandbox.AllowWrite = []string{"~/.keys"}, []string{"~/notes"}, []string{"~/.claude"}
	require.Equal(t, "key\nno note\nread-only\nno\nfile\n", d.step(r, script))
	require.FileExists(t, filepath.Join(d.home, ".claude/skill"))
	require.NoFileExists(t, filepath.Join(d.home, "notes/m"))
}

// The program's directories may be links, or missing.
func TestPlacesBehindLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(d.home, "dotfiles"), 0o755))
	require.NoError(t, os.Rename(filepath.Join(d.home, ".claude"), filepath.Join(d.home, "dotfiles", "claude")))
	require.NoError(t, os.Symlink("dotfiles/claude", filepath.Join(d.home, ".claude")))
	require.Equal(t, `{"user":1}{}`, d.step(d.runner("A"), "cd ~ && cat .claude.json .claude/settings.json && echo x > .claude/settings.json && echo new > .claude/.credentials.json"))
	require.Equal(t, "{}", d.files()["dotfiles/claude/settings.json"])
	require.Equal(t, "new\n", d.files()["dotfiles/claude/.credentials.json"])

	require.NoError(t, os.RemoveAll(filepath.Join(d.home, "dotfiles")))
	require.NoError(t, os.Remove(filepath.Join(d.home, ".claude")))
	require.Equal(t, "x\n", d.step(d.runner("B"), "cd ~ && echo x > .claude/settings.json && cat .claude/settings.json"))
	require.NoDirExists(t, filepath.Join(d.home, ".claude"))
}

// A program that does not find its interpreter gets a hint.
func TestInterpreterThatIsNotShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(d.home, ".other"), 0o755))
	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(d.home, ".other", "sh")))
	path := filepath.Join(d.home, ".hidden", "bin", "claude")
	require.NoError(t, os.Symlink("../../.other/wrapper", path))
	d.write(".other/wrapper", "#!/nowhere/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(d.home, ".other/wrapper"), 0o755))
	r := d.runner("A")
	var err error
	r.confinement, err = r.confined()
	require.NoError(t, err)
	_, err = start(launch{path: path, inv: Invocation{Dir: d.work}, confinement: r.confinement, stdout: io.Discard, stderr: io.Discard, more: r.seesMore()})
	var told *Error
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Hint, "sandbox.allowRead")
	require.NoError(t, r.confinement.close())
	r.confinement = &confinement{box: &boxing{}}
	require.Contains(t, r.sandboxHints(tried{Outcome: Outcome{Kind: Failed, Error: Crashed}})[2], "sandbox.allowRead")
}

// deskVariable is the directory of the desk for a test binary that acts as an adapter.
const deskVariable = "UWF_CLIAGENT_TEST_DESK"

// The program ends when its adapter is killed, whatever signals it ignores.
func TestProgramEndsWithItsAdapter(t *testing.T) {
	if dir := os.Getenv(deskVariable); dir != "" {
		d := newDesk(t, dir)
		p := d.begin(d.runner("A"), `trap "" TERM INT HUP; (setsid sh -c 'trap "" TERM; sleep 600' > ../work/pipe &) ; exec > ../work/pipe; echo ready; sleep 600`)
		_, _ = p.Wait()
		return
	}
	t.Parallel()
	dir := t.TempDir()
	d := newDesk(t, t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "home", "work"), 0o755))
	pipe := filepath.Join(dir, "home", "work", "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	self, err := os.Executable()
	require.NoError(d, err)
	adapter := exec.Command(self, "-test.run=^TestProgramEndsWithItsAdapter$")
	adapter.Env = append(os.Environ(), deskVariable+"="+dir)
	require.NoError(t, adapter.Start())
	f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.SetReadDeadline(time.Now().Add(30*time.Second)))
	var got strings.Builder
	for buf := make([]byte, 100); !strings.Contains(got.String(), "ready"); {
		n, err := f.Read(buf)
		got.Write(buf[:n])
		if err != io.EOF { // not opened yet
			require.NoError(t, err)
		}
	}
	require.NoError(t, adapter.Process.Kill())
	_, _ = adapter.Process.Wait()
	_, err = io.ReadAll(f)
	require.NoError(t, err, "nobody can write to it any more")
}

// A program with a restricted network has only a proxy, and does not run where that cannot be enforced.
func TestProgramWithALimitedNetwork(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	r := d.runner("T1")
	r.sandbox.Network = protocol.Network{"api.example"}
	require.Equal(t, "1 http://127.0.0.1:3128\n", d.step(r, `echo $(grep -c : /proc/net/dev) $HTTPS_PROXY`))
	r = d.runner("T1")
	r.sandbox.Network = protocol.Network{protocol.NetworkNone}
	require.Equal(t, "1\n", d.step(r, `echo $(grep -c : /proc/net/dev) $HTTPS_PROXY`))
	for mode, exe := range map[string]string{protocol.SandboxNone: d.exe, protocol.SandboxAuto: "/nowhere/uwf"} {
		r = d.runner("T1")
		r.sandbox.Mode, r.sandbox.Network, r.env.Exe = mode, protocol.Network{protocol.NetworkNone}, exe
		_, err := r.confined()
		var denied *Error
		require.ErrorAs(t, err, &denied, mode)
		require.Equal(t, errorkind.Denied, denied.Kind)
	}
}

// Where namespaces don't work, the program gets the lower tier when it is started, unless the config requires more.
func TestNamespacesDoNotWork(t *testing.T) {
	t.Parallel()
	d := newDesk(t, t.TempDir())
	program := filepath.Join(filepath.Dir(d.exe), box.Program)
	require.NoError(t, os.Remove(program))
	programtest.Write(t, program, "#!/bin/sh\necho '{\"stage\":\"mount\",\"error\":\"refused\"}' >&3\n") // it reads nothing
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, d.exe))
	if confine.Level() == 0 {
		t.Skip("no Landlock here")
	}
	agentkittest.Run(t, agentkit.Options{Name: "x", Run: func(_ context.Context, req *agentkit.Request) (agentkit.Result, error) {
		r := d.runner("A")
		r.req, r.sandbox.AllowRead = req, []string{"~/.hidden"} // where the program is
		require.Equal(t, "{}closed\n", d.step(r, "cd ~; cat .claude/settings.json; (echo x >> .bashrc) 2>/dev/null || echo closed"))
		require.Contains(t, r.held, "landlock")
		return agentkit.Result{Output: "---\n$status: done\n---\n"}, nil
	}}, agentkittest.Scenario{})

	r := d.runner("A")
	r.sandbox.Mode = protocol.SandboxRequired
	r.confinement, err = r.confined()
	require.NoError(t, err)
	_, err = start(launch{path: "/bin/true", inv: Invocation{Dir: d.work}, confinement: r.confinement, stdout: io.Discard, stderr: io.Discard})
	var denied *Error
	require.ErrorAs(t, err, &denied)
	require.Equal(t, errorkind.Denied, denied.Kind)
	require.NoError(t, r.confinement.close())
}
