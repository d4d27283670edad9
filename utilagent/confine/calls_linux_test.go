package confine_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// probe makes a system call in the test's own program and returns its error.
func probe(what string, args []string) error {
	number := func(n int) uintptr {
		v, err := strconv.ParseUint(args[n], 0, 64)
		if err != nil {
			panic(err)
		}
		return uintptr(v)
	}
	raw := func(call uintptr, a ...uintptr) error {
		a = append(a, 0, 0, 0, 0, 0, 0)
		if _, _, failed := unix.Syscall6(call, a[0], a[1], a[2], a[3], a[4], a[5]); failed != 0 {
			return failed
		}
		return nil
	}
	switch what {
	case "call": // with invalid arguments, so that nothing happens if it is allowed
		return raw(number(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0))
	case "numbers":
		var a []uintptr
		for n := range args[1:] {
			a = append(a, number(n+1))
		}
		return raw(number(0), a...)
	case "open":
		fd, err := unix.Open(args[0], unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, uint32(number(1)))
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	case "chmod":
		return unix.Chmod(args[0], uint32(number(1)))
	case "mknod":
		return unix.Mknod(args[0], uint32(number(1)), int(unix.Mkdev(1, 3)))
	case "unshare":
		return unix.Unshare(int(number(0)))
	case "clone":
		pid, _, failed := unix.RawSyscall6(unix.SYS_CLONE, number(0)|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if failed != 0 {
			return failed
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	case "confined": // a script, by a program without namespaces
		c, err := confine.Command(os.Getenv("AGENT"), confine.Rules{Dirs: args[1:]}, proc.Command{
			Path: "/bin/sh", Args: []string{"-c", args[0]}, Dir: "/", Env: os.Environ(),
		})
		if err != nil {
			return err
		}
		child, err := proc.Start(c)
		if err != nil {
			return err
		}
		status, err := child.Wait(context.Background(), 0)
		if err == nil && status.Code != 0 {
			err = fmt.Errorf("exit status %d", status.Code)
		}
		return err
	case "trace":
		return unix.PtraceAttach(int(number(0)))
	case "memory":
		var buf [1]byte
		local := []unix.Iovec{{Base: &buf[0], Len: 1}}
		_, err := unix.ProcessVMReadv(int(number(0)), local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&buf[0])), Len: 1}}, 0)
		return err
	case "limit":
		return unix.Prlimit(int(number(0)), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	case "ioctl":
		_, _, failed := unix.Syscall(unix.SYS_IOCTL, 0, uintptr(number(0)), 0)
		return failed
	case "terminal":
		return terminal()
	case "connect":
		c, err := net.Dial("unix", args[0])
		if err == nil {
			err = c.Close()
		}
		return err
	}
	return fmt.Errorf("no probe %s", what)
}

// terminal creates and uses a pseudoterminal.
func terminal() error {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer ours.Close()
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		return err
	}
	theirs, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer theirs.Close()
	_, err = unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
	return err
}

func TestDangerousCallsAreRefused(t *testing.T) {
	t.Parallel()
	if !confine.Seccomp() || confine.Level() == 0 {
		require.Contains(t, confine.Describe(), "no", "nothing is promised")
		return
	}
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(f, nil, 0o644))
	refused := "operation not permitted"
	cases := []struct{ probe, want string }{
		{fmt.Sprint("call ", unix.SYS_MOUNT), refused},
		{fmt.Sprint("call ", unix.SYS_BPF), refused},
		{fmt.Sprint("call ", unix.SYS_IO_URING_SETUP), refused},
		{fmt.Sprint("call ", unix.SYS_OPEN_BY_HANDLE_AT), refused},
		{fmt.Sprint("call ", unix.SYS_KEYCTL), refused},
		{fmt.Sprint("call ", unix.SYS_CLOCK_SETTIME), refused},
		{fmt.Sprint("call ", unix.SYS_SETNS), refused},
		{fmt.Sprint("call ", unix.SYS_SHMGET), refused},
		{fmt.Sprint("call ", unix.SYS_SHMAT), refused},
		{fmt.Sprint("call ", unix.SYS_SHMCTL), refused},
		{fmt.Sprint("call ", unix.SYS_MSGGET), refused},
		{fmt.Sprint("call ", unix.SYS_MSGRCV), refused},
		{fmt.Sprint("call ", unix.SYS_SEMGET), refused},
		{fmt.Sprint("call ", unix.SYS_SEMOP), refused},
		{fmt.Sprint("call ", unix.SYS_MQ_OPEN), refused},
		{fmt.Sprint("call ", unix.SYS_CLONE3), "function not implemented"},
		{fmt.Sprint("call ", unix.SYS_OPENAT2), "function not implemented"},
		{fmt.Sprint("call ", 0x40000000), "function not implemented"},
		{fmt.Sprint("call ", 5000), "function not implemented"},
		{"chmod " + f + " 04755", refused},
		{"chmod " + f + " 02755", refused},
		{"chmod " + f + " 01755", "<nil>"},
		{"open " + f + "1 04755", refused},
		{"open " + f + "2 0600", "<nil>"},
		{fmt.Sprintf("mknod %s3 %#o", f, unix.S_IFCHR|0o600), refused},
		{fmt.Sprintf("mknod %s3 %#o", f, unix.S_IFBLK|0o600), refused},
		{fmt.Sprintf("mknod %s3 %#o", f, unix.S_IFREG|0o4755), refused},
		{fmt.Sprintf("mknod %s3 %#o", f, unix.S_IFIFO|0o600), "<nil>"},
		{fmt.Sprintf("unshare %#x", unix.CLONE_NEWUSER), refused},
		{fmt.Sprintf("unshare %#x", unix.CLONE_NEWNET), refused},
		{fmt.Sprintf("unshare %#x", unix.CLONE_FILES), "<nil>"},
		{fmt.Sprintf("clone %#x", unix.CLONE_NEWUSER), refused},
		{"clone 0", "<nil>"},
		{fmt.Sprint("trace ", os.Getpid()), refused},
		{fmt.Sprint("memory ", os.Getpid()), refused},
		{fmt.Sprint("limit ", os.Getpid()), refused},
		{"limit 0", "<nil>"},
		{fmt.Sprint("numbers ", unix.SYS_SCHED_SETAFFINITY, " ", os.Getpid()), refused},
		{fmt.Sprint("numbers ", unix.SYS_SCHED_SETSCHEDULER, " ", os.Getpid()), refused},
		{fmt.Sprint("numbers ", unix.SYS_SCHED_SETPARAM, " ", os.Getpid()), refused},
		{fmt.Sprint("numbers ", unix.SYS_SCHED_SETATTR, " ", os.Getpid()), refused},
		{fmt.Sprint("numbers ", unix.SYS_SCHED_SETSCHEDULER, " 0"), "invalid argument"}, // the kernel validated it
		{fmt.Sprint("numbers ", unix.SYS_SETPRIORITY, " 0 ", os.Getpid(), " 19"), refused},
		{fmt.Sprint("numbers ", unix.SYS_SETPRIORITY, " 1 0 19"), refused}, // for a process group
		{fmt.Sprint("numbers ", unix.SYS_SETPRIORITY, " 2 0 19"), refused}, // for all of the user's processes
		{fmt.Sprint("numbers ", unix.SYS_SETPRIORITY, " 0 0 19"), "<nil>"},
		{fmt.Sprint("numbers ", unix.SYS_IOPRIO_SET, " 1 ", os.Getpid(), " 24576"), refused},
		{fmt.Sprint("numbers ", unix.SYS_IOPRIO_SET, " 3 0 24576"), refused},
		{fmt.Sprint("numbers ", unix.SYS_IOPRIO_SET, " 1 0 24576"), "<nil>"},
		{fmt.Sprintf("numbers %d %d 1", unix.SYS_SOCKET, unix.AF_VSOCK), refused},
		{fmt.Sprintf("ioctl %d", unix.TIOCSTI), refused},
		{fmt.Sprintf("ioctl %d", unix.TIOCLINUX), refused},
		{fmt.Sprintf("ioctl %d", unix.TIOCGWINSZ), "inappropriate ioctl for device"},
	}
	var script []string
	for _, c := range cases {
		script = append(script, `"$AGENT" probe `+c.probe)
	}
	out, _ := run(t, strings.Join(script, "\n"), dir)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, len(cases), out)
	for i, c := range cases { // in a PID namespace other processes do not exist
		require.Equal(t, c.want, strings.Replace(lines[i], unix.ESRCH.Error(), refused, 1), c.probe)
	}
}

func TestProgramsMayMakeNamespaces(t *testing.T) {
	t.Parallel()
	if !confine.Seccomp() || confine.Level() == 0 {
		require.Contains(t, confine.Describe(), "no", "nothing is promised")
		return
	}
	out, _ := runUnder(t, confine.Rules{Profile: confine.Program}, fmt.Sprintf(`"$AGENT" probe call %d; "$AGENT" probe call %d`, unix.SYS_SETNS, unix.SYS_MOUNT))
	prosetest.Text(t, out)
	shared := fmt.Sprintf(`"$AGENT" probe call %d; "$AGENT" probe call %d`, unix.SYS_SHMGET, unix.SYS_SEMCTL)
	out, _ = runUnder(t, confine.Rules{Profile: confine.Program}, shared)
	prosetest.Text(t, out)
	out, _ = runUnder(t, confine.Rules{Profile: confine.Program, IPC: true}, shared)
	prosetest.Text(t, out, "who is allowed to share memory")
	if _, err := os.Stat("/dev/pts/ptmx"); err == nil && terminal() == nil { // a container may have none
		out, _ = runUnder(t, confine.Rules{Profile: confine.Program, Terminals: true}, `"$AGENT" probe terminal`)
		require.Equal(t, "<nil>\n", out, "some agents run commands in terminals")
		out, _ = runUnder(t, confine.Rules{Profile: confine.Program}, `"$AGENT" probe terminal`)
		require.Contains(t, out, "permission denied", "others have no use for the user's")
	}
	out, code := runUnder(t, confine.Rules{Profile: "other"}, "true")
	require.Equal(t, 126, code)
	prosetest.Text(t, out)
}

// Even if root runs the test, the command has only the capabilities in Keep.
func TestCapabilitiesAreDropped(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	mine := capabilities(t, string(status))
	for _, keep := range [][]string{nil, {"chown", "dac_override"}} {
		out, _ := runUnder(t, confine.Rules{Keep: keep}, "cat /proc/self/status")
		got := capabilities(t, out)
		want := uint64(0)
		if keep != nil {
			want = (1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE) & mine["CapPrm"]
		}
		require.Equal(t, want, got["CapPrm"])
		require.Equal(t, want, got["CapEff"])
		require.Zero(t, got["CapInh"]|got["CapAmb"])
		if mine["CapEff"]&(1<<unix.CAP_SETPCAP) != 0 {
			require.Equal(t, want, got["CapBnd"]&mine["CapPrm"])
		}
	}
	out, _ := runUnder(t, confine.Rules{Keep: []string{"sys_admin"}}, "cat /proc/self/status")
	require.Zero(t, capabilities(t, out)["CapPrm"], "it is none that can be kept")
}

func capabilities(t *testing.T, status string) map[string]uint64 {
	t.Helper()
	sets := map[string]uint64{}
	for line := range strings.SplitSeq(status, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "Cap") {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			require.NoError(t, err)
			sets[name] = n
		}
	}
	return sets
}

func TestSocketsOfOthers(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 || !confine.Seccomp() {
		require.Contains(t, confine.Describe(), "no", "nothing is promised")
		return
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	out, _ := runUnder(t, confine.Rules{NoUnixSockets: true}, `"$AGENT" probe connect `+socket)
	prosetest.Text(t, out)
	out, _ = run(t, `"$AGENT" probe connect `+socket)
	if confine.Level() >= 9 {
		require.Contains(t, out, "permission denied")
	} else {
		require.Equal(t, "<nil>\n", out, "older kernels do not hold this: docs/security.md says so")
	}
}

func TestHiddenPaths(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Zero(t, confine.Level(), "nothing is promised")
		return
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	write := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(name+"\n"), 0o755))
	}
	for _, name := range []string{"plain", "keys/id", "keys/public", "keys/deep/work/f", "config/app/token", "config/other/f", "token"} {
		write(name)
	}
	require.NoError(t, os.Symlink(filepath.Join(home, "keys"), filepath.Join(home, "way")))
	rules := confine.Rules{
		Dirs:     []string{filepath.Join(home, "config"), filepath.Join(home, "keys/deep/work")},
		Hidden:   []string{filepath.Join(home, "keys"), filepath.Join(home, "config/app"), filepath.Join(home, "token"), filepath.Join(home, "missing")},
		Readable: []string{filepath.Join(home, "keys/public")},
	}
	out, _ := runUnder(t, rules, "cd "+home+`
for f in plain keys/public config/other/f keys/deep/work/f; do cat $f || echo cannot read $f; done
for f in keys/id way/id config/app/token token; do cat $f 2>/dev/null && echo could read $f; ./$f 2>/dev/null; done
for f in keys/new keys/id config/app/new config/app/token token config/new; do (echo x > $f) 2>/dev/null && echo could write $f; done
for f in config/other/new config/other/f keys/deep/work/new; do (echo x > $f) || echo cannot write $f; done
mv config/app config/app2 2>/dev/null && echo could move
ls keys >/dev/null || echo cannot list
ls / >/dev/null || echo cannot list root
`)
	require.Equal(t, "plain\nkeys/public\nconfig/other/f\nkeys/deep/work/f\n", out)
}

// Describe reports the gaps, and nothing else.
func TestOpenIsReported(t *testing.T) {
	t.Parallel()
	if confine.Level() == 0 {
		require.Empty(t, confine.Open(false))
		return
	}
	require.Equal(t, !confine.CanDenySockets(), strings.Contains(confine.Open(false), "Unix sockets"))
	prosetest.Text(t, confine.Open(true))
	if confine.Seccomp() {
		require.NotContains(t, confine.Open(true), "sockets")
	}
}

// A command cannot read from other terminals, and so sees no keys typed there.
func TestTerminalsOfOthers(t *testing.T) {
	t.Parallel()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if confine.Level() == 0 || err != nil { // a container may have none
		require.True(t, confine.Level() == 0 || err != nil, "nothing is promised")
		return
	}
	defer ours.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	theirs := "/dev/pts/" + strconv.Itoa(n)
	_, err = os.Stat(theirs)
	require.NoError(t, err)
	out, _ := run(t, "(: < "+theirs+") 2>/dev/null && echo could read; (: > "+theirs+") 2>/dev/null && echo could write; : < /dev/null && echo goes on", t.TempDir())
	require.Equal(t, "goes on\n", out)
}
