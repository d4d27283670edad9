//go:build linux

// Command attacker makes system calls that a shell cannot make. It exits with 0 if the call reached its
// target. It affects nothing but its arguments.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	act, ok := acts()[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "attacker: no act", os.Args[1])
		os.Exit(2)
	}
	if err := act(append(os.Args[2:], "", "", "")); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		os.Exit(1)
	}
}

func acts() map[string]func(a []string) error {
	return map[string]func(a []string) error{
		"exchange": func(a []string) error {
			return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
		},
		"abstract":    func(a []string) error { return reach("unix", "@"+a[0]) },
		"connect":     func(a []string) error { return reach("unix", a[0]) },
		"datagram":    func(a []string) error { return reach("unixgram", a[0]) },
		"shm":         attach,
		"mq":          func(a []string) error { return queue(a[0]) },
		"setns":       setns,
		"handle":      byHandle,
		"umount":      func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
		"mount":       func(a []string) error { return unix.Mount("x", a[0], "tmpfs", 0, "") },
		"bind":        func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND, "") },
		"remount":     func(a []string) error { return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"fsopen":      func([]string) error { return opened(unix.Fsopen("tmpfs", 0)) },
		"opentree":    func(a []string) error { return opened(unix.OpenTree(unix.AT_FDCWD, a[0], unix.OPEN_TREE_CLONE)) },
		"setattr":     setattr,
		"pivot":       func(a []string) error { return unix.PivotRoot(a[0], a[0]) },
		"chroot":      func(a []string) error { return unix.Chroot(a[0]) },
		"ptrace":      func(a []string) error { return unix.PtraceSeize(number(a[0])) },
		"getfd":       getfd,
		"vmread":      vmread,
		"signal":      func(a []string) error { return unix.Kill(number(a[0]), 0) },
		"tgkill":      func(a []string) error { return unix.Tgkill(number(a[0]), number(a[0]), unix.SIGURG) },
		"pidfdsignal": pidfdSignal,
		"nice":        func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(a[0]), 7) },
		"affinity":    func(a []string) error { return unix.SchedSetaffinity(number(a[0]), &unix.CPUSet{1}) },
		"limits":      func(a []string) error { return unix.Prlimit(number(a[0]), unix.RLIMIT_CORE, &unix.Rlimit{}, nil) },
		"uring":       func([]string) error { return call(unix.SYS_IO_URING_SETUP, 1, zeros(256), 0) },
		"bpf":         func([]string) error { return call(unix.SYS_BPF, 0, zeros(128), 128) },
		"userfault":   func([]string) error { return call(unix.SYS_USERFAULTFD, 0, 0, 0) },
		"perf":        func([]string) error { return call(unix.SYS_PERF_EVENT_OPEN, zeros(128), 0, ^uintptr(0)) },
		"keyctl":      func([]string) error { _, err := unix.AddKey("user", "uwf-attack", []byte("x"), -2); return err },
		"fanotify":    func([]string) error { return opened(unix.FanotifyInit(0, 0)) },
		"vsock":       func([]string) error { return opened(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
		"packet":      func([]string) error { return opened(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
		"rawicmp":     func([]string) error { return opened(unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)) },
		"alg":         func([]string) error { return opened(unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)) },
		"type":        typeInto,
		"userns":      func(a []string) error { return inNamespaces(a, unix.CLONE_NEWUSER|unix.CLONE_NEWNS) },
		"usernet":     func(a []string) error { return inNamespaces(a, unix.CLONE_NEWUSER|unix.CLONE_NEWNET) },
		"unshare":     func([]string) error { return unix.Unshare(unix.CLONE_NEWNS) },
		"xattr":       func(a []string) error { return unix.Setxattr(a[0], "user.evil", []byte("1"), 0) },
		"fxattr":      fxattr,
		"touch":       func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
		"fchmod":      fchmod,
		"write":       func(a []string) error { return opened(unix.Open(a[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)) },
		"seteuid":     func([]string) error { return unix.Setresuid(-1, 12345, -1) },
		"stay":        stay,
		"host":        func(a []string) error { return host(a[0], os.Stdin, os.Stdout) },
		"fds":         inherited,
		"swap":        swap,
		"listen":      listen,
		"pty":         ptys,
		"locks":       locks,
		"capable":     capable,
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func opened(_ int, err error) error { return err }

func zeros(n int) uintptr { return uintptr(unsafe.Pointer(&make([]byte, n)[0])) }

func call(nr, a, b, c uintptr) error {
	if _, _, errno := unix.Syscall6(nr, a, b, c, 0, 0, 0); errno != 0 && errno != unix.EINVAL && errno != unix.E2BIG {
		return errno
	}
	return nil
}

func reach(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// attach reads another program's shared memory segment.
func attach(a []string) error {
	id, err := unix.SysvShmGet(number(a[0]), 0, 0)
	if err != nil {
		return err
	}
	text, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", text[:10])
	return nil
}

func queue(name string) error {
	p, err := unix.BytePtrFromString(strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDONLY, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func setns(a []string) error {
	fd, err := unix.Open("/proc/"+a[0]+"/ns/"+a[1], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, 0)
}

// byHandle opens a file in a visible directory by its handle.
func byHandle(a []string) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(a[1], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(dir, h, unix.O_RDONLY)
	if err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), "handle"))
	return err
}

func setattr(a []string) error {
	return unix.MountSetattr(unix.AT_FDCWD, a[0], unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
}

func getfd(a []string) error {
	p, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(p, number(a[1]), 0)
	if err != nil {
		return err
	}
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, os.NewFile(uintptr(fd), "theirs"))
	return err
}

func vmread(a []string) error {
	address, err := strconv.ParseUint(a[1], 0, 64)
	if err != nil {
		return err
	}
	text := make([]byte, 10)
	local := []unix.Iovec{{Base: &text[0], Len: 10}}
	if _, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: uintptr(address), Len: 10}}, 0); err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return nil
}

func pidfdSignal(a []string) error {
	p, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(p, unix.SIGURG, nil, 0)
}

// typeInto injects input into a terminal.
func typeInto(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.TIOCSTI, 'x')
}

// inNamespaces runs a program as root in new namespaces.
func inNamespaces(a []string, flags uintptr) error {
	var args []string
	for _, arg := range a {
		if arg != "" {
			args = append(args, arg)
		}
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return c.Run()
}

func fxattr(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Fsetxattr(fd, "user.evil", []byte("1"), 0)
}

func fchmod(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Fchmod(fd, 0o777)
}

// stay is a process that only SIGKILL ends, for at most two minutes.
func stay([]string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	time.Sleep(2 * time.Minute)
	return nil
}

// inherited fails unless it inherited unintended descriptors.
func inherited([]string) error {
	for fd := 3; fd < 1024; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if !strings.HasPrefix(path, "anon_inode:") && !strings.HasPrefix(path, "/sys/fs/cgroup") {
			fmt.Println(fd, path)
			_ = unix.Flock(fd, unix.LOCK_UN)
			return nil
		}
	}
	return errors.New("none")
}

// swap exchanges two names until its time is over, even if others change them.
func swap(a []string) error {
	for until := time.Now().Add(time.Duration(number(a[2])) * time.Millisecond); time.Now().Before(until); {
		_ = unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
		time.Sleep(time.Millisecond) // let the target run
	}
	return nil
}

// capable fails unless it has an effective capability.
func capable([]string) error {
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok && strings.Trim(set, "0 \t\n") != "" {
			return nil
		}
	}
	return errors.Join(errors.New("none"), err)
}
