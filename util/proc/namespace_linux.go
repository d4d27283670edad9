package proc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// statusVar holds the descriptor on which an init reports how its command ended.
const statusVar = "UWF_STATUS_FD"

const firstInherited = 3

// startInit starts a child as the init of a pid namespace, where the kernel grants one. The
// child reports how its command ended through a pipe: an init cannot end by a signal itself.
func startInit(c Command) (*Child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	c.Env = append(slices.Clip(c.Env), statusVar+"="+strconv.Itoa(firstInherited+len(c.Inherit)))
	c.Inherit = append(slices.Clip(c.Inherit), write)
	c.Init, c.namespaces = false, inNamespaces
	child, err := Start(c)
	if err != nil { // containers and some distributions refuse namespaces
		c.namespaces = nil
		child, err = Start(c)
	}
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	child.ended = func() (Status, bool) { return reported(read) }
	return child, nil
}

// inNamespaces asks for the namespaces. An ordinary user gets them only with a user namespace,
// in which the user keeps its id; the capability is for the mount of /proc.
func inNamespaces(a *syscall.SysProcAttr) {
	a.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		return
	}
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
}

// reported returns how an init's command ended; ok is false if the init was killed before.
func reported(report *os.File) (end Status, ok bool) {
	defer report.Close()
	var raw [4]byte
	if _, err := io.ReadFull(report, raw[:]); err != nil {
		return Status{}, false
	}
	return Waited(binary.NativeEndian.Uint32(raw[:])), true
}

// Init is the part of a child that [Command.Init] started.
type Init struct {
	status  *os.File
	Environ []string // for the command
}

// NewInit returns the part to play, or false if this process was not started as an init. It
// mounts a /proc of the namespace; if that fails, programs see the machine's.
func NewInit(environ []string) (*Init, bool) {
	i := &Init{}
	for _, kv := range environ {
		value, is := strings.CutPrefix(kv, statusVar+"=")
		if fd, err := strconv.Atoi(value); is && err == nil && fd >= firstInherited {
			i.status = os.NewFile(uintptr(fd), "status")
		}
		if !is {
			i.Environ = append(i.Environ, kv)
		}
	}
	if i.status == nil {
		return nil, false
	}
	if os.Getpid() != 1 {
		Adopt()
	} else if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	return i, true
}

// Run runs a command in this process's group until it ends, and reports that. The command gets
// the standard streams and no other descriptor. Its leftovers are killed: by the kernel when the
// init of a namespace ends, else by this process.
func (i *Init) Run(argv []string) error {
	if err := unix.CloseRange(firstInherited, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	for s := syscall.Signal(1); s <= unix.SIGSYS; s++ {
		if !signal.Ignored(s) { // the whole group gets it, and the command decides
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	// The command runs with this process's rights: it must not trace it, nor take its descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: i.Environ, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	var status syscall.WaitStatus
	for ended := 0; ended != pid; {
		ended, err = syscall.Wait4(-1, &status, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("wait4", err)
		}
	}
	if os.Getpid() != 1 {
		_, _ = KillChildren(nil)
	}
	_, err = i.status.Write(binary.NativeEndian.AppendUint32(nil, uint32(status)))
	return err
}
