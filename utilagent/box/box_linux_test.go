package box_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gocache"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/box/inside"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// The test binary acts as uwf-box, which has process ID 1 in its namespace unless it creates that.
func TestMain(m *testing.M) {
	if os.Getpid() == 1 || slices.Contains(os.Args, plan.Create) {
		os.Exit(inside.Main(os.Args[1:], os.Stderr))
	}
	if len(os.Args) == 3 && os.Args[1] == "ways-out" {
		waysOut(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// space is a home with a repository.
type space struct {
	*testing.T
	home, work, state, tmp string
	program                string   // default: the shell
	more                   []string // of the program's environment
	request                box.Request
	change                 func(*proc.Command) // of the command that starts uwf-box; can be nil
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
		Workspace: s.work, Home: s.home, Temporary: s.tmp, State: s.state, Environ: os.Environ(),
		Off: offlimits.New(offlimits.Options{UserHome: s.home, Dir: s.work}),
	}
	return s
}

func (s *space) write(name, text string) {
	s.Helper()
	programtest.Write(s, filepath.Join(s.home, name), text)
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

// run runs a shell script in the box, including the cleanup at its end.
func (s *space) run(script string) (out string, status proc.Status, said []string) {
	s.Helper()
	exe, err := os.Executable()
	require.NoError(s, err)
	read, write, err := os.Pipe()
	require.NoError(s, err)
	cmd, run, err := s.request.Prepare(exe, proc.Command{
		Path: cmp.Or(s.program, "/bin/sh"), Args: []string{"-c", script}, Dir: s.work, Env: append(s.env(), s.more...), Stdout: write, Stderr: write,
	})
	require.NoError(s, err)
	if s.change != nil {
		s.change(&cmd)
	}
	child, err := proc.Start(cmd)
	require.NoError(s, write.Close())
	if why := (*proc.BoxError)(nil); err != nil {
		require.ErrorAs(s, err, &why)
		if none := box.Probe(exe); none != nil {
			s.Skipf("no namespaces here: %v", none)
		}
	}
	require.NoError(s, err)
	text, err := io.ReadAll(read)
	require.NoError(s, err)
	status, err = child.Wait(context.Background(), time.Second)
	require.NoError(s, err)
	if !cmd.Box.Soon {
		require.NotContains(s, proc.Children(), child.Pid(), "an agent that kills all its children would warn")
	}
	said, err = run.End(s.Context())
	require.NoError(s, err)
	return string(text), status, said
}

// named returns the processes whose command lines contain a word.
func named(t *testing.T, word string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have ended
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && bytes.Contains(text, []byte(word)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestAhead tests a uwf-box that starts before its plan is known, whether the command can use it or not.
func TestAhead(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	if none := box.Probe(exe); none != nil {
		t.Skipf("no namespaces here: %v", none)
	}
	for name, change := range map[string]func(*space, *proc.Command){
		"taken": func(s *space, c *proc.Command) {
			c.Box.Ahead = box.StartAhead(exe, s.work, nil, false)
		},
		"with another network": func(s *space, c *proc.Command) {
			c.Box.Ahead = box.StartAhead(exe, s.work, protocol.Network{"none"}, false)
		},
		"ended": func(s *space, c *proc.Command) {
			c.Box.Ahead = box.StartAhead(exe, s.work, nil, false)
			c.Box.Ahead.Discard()
		},
		"ended by a signal": func(s *space, c *proc.Command) {
			c.Path = filepath.Join(s.home, "box-"+rand.Text())
			require.NoError(s, os.Symlink(exe, c.Path))
			c.Box.Ahead = box.StartAhead(c.Path, s.work, nil, false)
			require.Eventually(s, func() bool {
				found := named(s.T, c.Path)
				return len(found) == 1 && unix.Kill(found[0], unix.SIGTERM) == nil
			}, time.Minute, time.Millisecond)
		},
		"which cannot start": func(s *space, c *proc.Command) {
			c.Box.Ahead = box.StartAhead(filepath.Join(s.home, "missing"), s.work, nil, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			s.change = func(c *proc.Command) {
				change(s, c)
				c.Box.Soon = true
			}
			left := "9" + rand.Text() // a word in its command line
			out, status, _ := s.run("env -i setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' " + left + " & echo out; exit 3")
			require.Equal(t, "out\n", out)
			require.Equal(t, 3, status.Code)
			require.Empty(t, named(t, left), "outlives the command")
			c := box.StartAhead(exe, s.work, nil, false)
			c.Discard()
			c.Discard()
		})
	}
}

// TestRun tests what a program sees, can do and leaves behind, with a script per case whose output is
// compared.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  func(*space)
		script  string
		out     string
		code    int
		said    int    // number of messages
		after   string // script to run outside afterwards
		outside string // its expected output
	}{
		"statuses":    {script: "exit 3", code: 3},
		"its home":    {script: `ls -A $HOME; cat $HOME/.ssh/id 2>/dev/null; cat ~/docs/a; ~/.local/bin/tool`, out: ".local\ndocs\nsrc\ntexttool\n"},
		"its places":  {script: `ls /run /dev/shm; echo x >/dev/shm/x; echo x >/tmp/x; [ $(ls /proc | grep -c '^[0-9]') -lt 9 ] && echo few`, out: "/dev/shm:\n\n/run:\nuwf\nfew\n"},
		"devices":     {script: `touch /dev/null && echo touched`, out: "touched\n"},
		"hidden /run": {before: func(s *space) { s.allow("Hide", "/run") }, script: `ls /run; cat ~/docs/a`, out: "uwf\ntext"},
		"a home in a hidden directory": {
			before: func(s *space) { s.allow("Hide", filepath.Dir(s.home)) },
			script: `ls -A ~/..; cat ~/docs/a; cat ~/.ssh/id; ls /run; echo x >made`,
			out:    "home\ntextuwf\n", after: "cat made", outside: "x\n",
		},
		"its work":     {script: `echo x >made; git add made; git commit -qm second; git log --format=%s`, out: "second\nfirst\n", after: `git log --format=%s`, outside: "second\nfirst\n"},
		"hooks":        {script: `echo x >.git/hooks/pre-commit; mv .git/hooks h; mv .git g; rm -rf .git/hooks; ls -d .git/hooks`, out: ".git/hooks\n"},
		"settings":     {script: `git config core.fsmonitor evil; git config core.fsmonitor`, out: "evil\n", said: 1, after: "git config core.fsmonitor || echo none", outside: "none\n"},
		"a remote":     {script: `git remote add up https://up.example/x`, said: 1, after: "git remote -v | head -1", outside: "up\thttps://up.example/x (fetch)\n"},
		"what is left": {script: `env -i setsid sleep 900 </dev/null >/dev/null 2>&1 & echo $!`, out: "", after: `pgrep -f '[s]leep 900' || echo none`, outside: "none\n"},
		"keys":         {before: func(s *space) { s.write("src/work/.env", "key") }, script: `cat .env || echo closed; mv .env x || ls -A | grep env`, out: "closed\n.env\n"},
		"keys in git": {before: func(s *space) {
			s.write("src/work/.env", "no key\n")
			s.git("add", ".env")
			s.git("commit", "-qm", "x")
		}, script: `cat .env; git status --short`, out: "no key\n"},
		"keys by leave":   {before: func(s *space) { s.write("src/work/.env", "key\n"); s.allow("AllowRead", ".env") }, script: `cat .env`, out: "key\n"},
		"what is obeyed":  {before: func(s *space) { s.write("src/work/.mcp.json", "mine") }, script: `echo x >.mcp.json; rm .mcp.json; cat .mcp.json`, out: "mine"},
		"obeyed by leave": {before: func(s *space) { s.write("src/work/.mcp.json", "mine"); s.allow("AllowWrite", ".mcp.json") }, script: `echo x >.mcp.json`, after: "cat .mcp.json", outside: "x\n"},
		"hooks behind a link": {
			before: func(s *space) { s.shell("mkdir -p s/hooks; rm -rf .git/hooks; ln -s ../s/hooks .git/hooks") },
			script: `mv s s2; mkdir -p s/hooks; echo x >s/hooks/pre-commit; rm .git/hooks; true`, said: 1, after: "ls s; readlink .git/hooks", outside: "uwf-new-hooks\n../s/hooks\n",
		},
		"no settings": {
			before: func(s *space) { s.shell("rm .git/config") }, script: `printf '[core]\n\tfsmonitor = evil\n' >.git/config`,
			said: 1, after: "git config core.fsmonitor || echo none", outside: "none\n",
		},
		"settings of a nested repository": {
			before: func(s *space) { s.shell("git init -q sub") }, script: `cd sub; git config user.name me; git config core.fsmonitor evil`,
			said: 2, after: "git -C sub config --get-regexp '^(user.name|core.fsmonitor)'", outside: "user.name me\n",
		},
		"a repository elsewhere in place of one": {
			before: func(s *space) { s.shell("git init -q sub; git init -q ../other; git -C ../other config user.name me") },
			script: `git -C sub config remote.x.url https://x.example/x; mv sub sub2; ln -s ../other sub`,
			said:   1, after: "git -C ../other config --get-regexp '^(user|remote)'", outside: "user.name me\n",
		},
		"settings with another name": {
			before: func(s *space) { s.shell("cp -al .git ../copy") }, script: `git config user.name me`,
			said: 1, after: "git config user.name; git config -f ../copy/config user.name || echo none", outside: "me\nnone\n",
		},
		"a false repository": {
			before: func(s *space) {
				s.shell("mkdir d; echo ref: refs/heads/x >d/HEAD; mkfifo d/objects d/refs; mkdir e; cp .git/HEAD e; ln -s ../.git/objects ../.git/refs e; ln -s /etc e/hooks; mkdir -p f/config f/objects f/refs; touch f/HEAD")
			},
			script: `echo on`, out: "on\n",
		},
		"new and obeyed": {script: `mkdir .claude; echo ../x >.git/commondir`, said: 1, after: `ls -A`, outside: ".git\nuwf-new-claude\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			if c.before != nil {
				c.before(s)
			}
			out, status, said := s.run("exec 2>/dev/null; " + c.script)
			require.Equal(t, proc.Status{Code: c.code}, proc.Status{Code: status.Code, Signal: status.Signal})
			if name != "what is left" {
				require.Equal(t, c.out, out)
			}
			require.Len(t, said, c.said, "%q", said)
			if c.after != "" {
				require.Equal(t, c.outside, s.shell(c.after))
			}
			left, err := filepath.Glob(filepath.Join(s.state, "run-*", "state.json"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestGoCache tests when a new build cache is filled from the user's; see package gocache for how.
func TestGoCache(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *space, own, users string)
		cold   bool
	}{
		"new": {},
		"a moment old": {change: func(s *space, own, users string) {
			s.request.Now = s.request.Now.Add(time.Minute)
		}},
		"old": {cold: true, change: func(s *space, own, users string) {
			s.request.Now = s.request.Now.Add(2 * time.Hour)
		}},
		"old, with a new directory": {cold: true, change: func(s *space, own, users string) {
			s.request.Now = s.request.Now.Add(2 * time.Hour)
			s.request.Writable = []string{filepath.Join(s.home, filepath.Dir(own))}
			require.NoError(s, os.RemoveAll(filepath.Join(s.home, own)))
			require.NoError(s, os.Mkdir(filepath.Join(s.home, own), 0o700))
		}},
		"no cache of the user": {cold: true, change: func(s *space, own, users string) {
			require.NoError(s, os.RemoveAll(filepath.Join(s.home, users)))
		}},
		"denied": {cold: true, change: func(s *space, own, users string) {
			s.request.Off = offlimits.New(offlimits.Options{UserHome: s.home, Dir: s.work, Hide: []string{filepath.Join(s.home, ".cache")}})
		}},
		"another program": {cold: true, change: func(s *space, own, users string) { s.more = append(s.more, "GOCACHEPROG=true") }},
		"another directory": {cold: true, change: func(s *space, own, users string) {
			require.NoError(s, os.RemoveAll(filepath.Join(s.home, users, "00")))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			const own, users = ".cache/uwf/commands/1/go-build", ".cache/go-build"
			s.write(users+"/00/file", "text")
			require.NoError(t, os.MkdirAll(filepath.Join(s.home, own), 0o700))
			s.request.Environ, s.request.Now = s.env(), time.Now()
			s.request.Writable = []string{filepath.Join(s.home, own)}
			s.more = []string{"GOCACHE=" + filepath.Join(s.home, own)}
			if c.change != nil {
				c.change(s, own, users)
			}
			out, status, _ := s.run(`set -- $GOCACHEPROG; echo $2; cat ~/.cache/go-build/00/file; [ -x "$1" ] || echo no program; ! echo x >~/.cache/go-build/new`)
			require.Zero(t, status.Code, out)
			if c.cold {
				require.NotContains(t, out, gocache.Argument)
				require.NotContains(t, out, "text")
				return
			}
			require.Contains(t, out, gocache.Argument+"\ntext")
			require.NotContains(t, out, "no program")
			require.NoFileExists(t, filepath.Join(s.home, users, "new"))
		})
	}
}

// A user's build cache that a command may write stays so.
func TestGoCacheWritable(t *testing.T) {
	t.Parallel()
	for _, users := range []string{".cache/go-build", "src", "src/work", "src/work/cache"} {
		s := newSpace(t)
		own, users := filepath.Join(s.home, ".cache/uwf/commands/1/go-build"), filepath.Join(s.home, users)
		for _, dir := range []string{own, filepath.Join(users, "00"), s.home + "/.cache/go-build/00", s.work + "/cache"} {
			require.NoError(t, os.MkdirAll(dir, 0o700))
		}
		s.request.Environ, s.request.Now = append(s.env(), "GOCACHE="+users), time.Now()
		s.request.Writable = []string{own, filepath.Join(s.home, ".cache/go-build")}
		s.more = []string{"GOCACHE=" + own}
		out, status, _ := s.run(`echo "program: $GOCACHEPROG"; touch ` + s.work + "/file " + s.request.Writable[1] + "/00/file " + s.work + "/cache/file")
		require.Equal(t, "program: \n", out, "%s: %v", users, status)
	}
}

// A home and a state directory behind a link work.
func TestBehindALink(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	link := filepath.Join(s.tmp, "link")
	require.NoError(t, os.Symlink(filepath.Dir(s.home), link))
	s.request.Home, s.request.State, s.request.Writable = filepath.Join(link, "home"), filepath.Join(link, "state"), []string{filepath.Join(link, "tmp")}
	out, status, _ := s.run("cat ~/docs/a; git config a.b c && git config a.b; cat ~/.ssh/id")
	require.Equal(t, 1, status.Code)
	require.Contains(t, out, "textc\n")
	require.NotContains(t, out, "key")
}

// allow sets one of AllowRead, AllowWrite and Hide to a path.
func (s *space) allow(field, name string) {
	o := offlimits.Options{UserHome: s.home, Dir: s.work}
	switch field {
	case "AllowRead":
		o.AllowRead = []string{name}
	case "AllowWrite":
		o.AllowWrite = []string{name}
	default:
		o.Hide = []string{name}
	}
	s.request.Off = offlimits.New(o)
}

func (s *space) shell(script string) string {
	s.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = s.work, s.env()
	out, err := cmd.Output()
	require.NoError(s, err)
	return string(out)
}

// Without namespaces or uwf-box, or if the workspace is the home, it reports the reason, and nothing runs.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.request.Workspace = s.home
	_, _, err := s.request.Prepare("/nowhere", proc.Command{Path: "/bin/true", Dir: s.home})
	require.ErrorIs(t, err, box.ErrNotHere)
	s = newSpace(t)
	cmd, run, err := s.request.Prepare(filepath.Join(s.home, "no-such-box"), proc.Command{Path: "/bin/true", Dir: s.work})
	require.NoError(t, err)
	_, err = proc.Start(cmd)
	var why *proc.BoxError
	require.ErrorAs(t, err, &why)
	require.NoError(t, run.Cancel())
	require.Empty(t, box.Find(""))
	require.Error(t, box.Probe("/bin/true"), "another program says nothing")
}

// A program can create a sandbox, and cannot undo ours from there.
func TestNest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mount", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
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

// Writes to a covered directory stay in the overlay.
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
	require.Equal(t, "old\nnew\n", out)
	out, _, _ = s.run("cat ~/.own/b")
	require.Equal(t, "x\n", out, "the next command finds it")
	require.NoError(t, os.RemoveAll(work), "the user can remove what the kernel created")
	text, err := os.ReadFile(filepath.Join(own, "a"))
	require.NoError(t, err)
	require.Equal(t, "old\n", string(text))
	require.NoFileExists(t, filepath.Join(own, "b"))
	require.FileExists(t, filepath.Join(upper, "b"))
}

// A program finds its own files, while other programs' files are hidden.
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
	s.request.Finds = box.ProgramFiles(s.program, s.work, s.env())
	out, status, _ := s.run("")
	require.Zero(t, status.Code)
	require.Contains(t, out, "package\nmodule\n")
	require.NotContains(t, out, "secret\n")

	s.write("src/work/script", "#!"+s.home+"/.d/secret\n")
	require.NoError(t, os.Symlink(filepath.Join(s.home, "src/work/script"), filepath.Join(s.home, ".b/bin/link")))
	require.Empty(t, box.ProgramFiles(filepath.Join(s.work, "script"), s.work, nil), "whoever wrote it would see what it names")
	require.Equal(t, []string{filepath.Join(s.home, ".b/bin")}, box.ProgramFiles(filepath.Join(s.home, ".b/bin/link"), s.work, nil))
}

// The home of uwf is hidden even inside the workspace.
func TestHomeInside(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.typed("mkdir -p .uwf/runs; printf secret > .uwf/config.yaml; printf heads > .uwf/threads.yaml")
	s.request.Off = offlimits.New(offlimits.Options{UserHome: s.home, Dir: s.work, Home: filepath.Join(s.work, ".uwf")})
	out, _, _ := s.run("cat .uwf/config.yaml .uwf/threads.yaml; echo x > .uwf/runs/x; rm -rf .uwf; true")
	require.NotContains(t, out, "secret")
	require.Contains(t, out, "heads")
	require.FileExists(t, filepath.Join(s.work, ".uwf/config.yaml"))
	require.NoFileExists(t, filepath.Join(s.work, ".uwf/runs/x"))
}
