package proc

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// boxPatience is the timeout for setting up the child's namespaces.
const boxPatience = 30 * time.Second

// boxCapabilities lists the capabilities that the child needs for the setup. A program of an ordinary user
// loses all others when it starts.
func boxCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP,
		unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN,
	}
}

// start starts the child and waits until it has started its program, or returns an error.
func (b *Box) start(c Command) (*Child, error) {
	text, told, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer told.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), text.Close())
	}
	given := []*os.File{text, write}
	if b.Status != nil {
		given = append(given, b.Status)
	}
	var listener *listenerSocket
	if b.Listener != nil {
		if listener, err = newListenerSocket(); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), text.Close(), read.Close(), write.Close())
		}
		defer listener.close()
		given = append(given, listener.theirs)
	}
	c.Inherit = append(given, c.Inherit...)
	cmd := &exec.Cmd{Path: c.Path, Args: []string{c.Path}, Dir: "/", Env: []string{}}
	setStreams(cmd, c)
	boxReport := &report{read, bufio.NewReader(read)}
	child := &Child{cmd: cmd, release: func() {}, ended: boxReport.ended}
	c.namespaces, c.Session = b.attributes, true // it has no terminal
	if c.WithParent {
		child.group, child.release, err = startTied(cmd, c)
	} else {
		child.group, err = startInGroup(cmd, c)
	}
	_ = errors.Join(write.Close(), text.Close())
	// Not beside the start: until the child's program starts, each page that is written is copied.
	content, unplanned := b.Plan()
	if err != nil {
		_ = read.Close()
		return nil, &BoxError{Stage: "namespaces", Err: err}
	}
	if unplanned == nil {
		late := time.AfterFunc(boxPatience, func() { _ = told.Close() })
		_, _ = told.Write(content) // the child reports what is wrong if it cannot read it
		late.Stop()
	}
	_ = told.Close()
	first, err := boxReport.next(boxPatience)
	if err == nil && first.Started != "" && listener != nil {
		if err = listener.receive(b.Listener); err != nil {
			first.Stage, first.Error = "network", err.Error()
		}
	}
	if err == nil && first.Started != "" {
		return child, nil
	}
	err = errors.Join(child.group.kill(), err)
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && first.Stage == "" {
		err = errors.Join(ErrBoxKilled, err)
	}
	child.release()
	_ = read.Close()
	switch {
	case unplanned != nil:
		return nil, unplanned
	case first.Stage == plan.StageStart:
		return nil, fmt.Errorf("%w", refusal{first.Error, syscall.Errno(first.Errno)})
	case first.Stage == "":
		return nil, &BoxError{Stage: "report", Err: fmt.Errorf("%s printed nothing: %w", c.Path, err)}
	}
	return nil, &BoxError{Stage: first.Stage, Err: refusal{first.Error, syscall.Errno(first.Errno)}}
}

// attributes requests the namespaces, in which the user keeps its id.
func (b *Box) attributes(a *syscall.SysProcAttr) {
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC
	if b.Network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	if o := b.Owner; o != nil && o.UID != uid {
		a.UidMappings = append(a.UidMappings, syscall.SysProcIDMap{ContainerID: o.UID, HostID: o.UID, Size: 1})
	}
	if o := b.Owner; o != nil && o.GID != gid {
		a.GidMappings = append(a.GidMappings, syscall.SysProcIDMap{ContainerID: o.GID, HostID: o.GID, Size: 1})
		a.GidMappingsEnableSetgroups = true
	}
	a.AmbientCaps = boxCapabilities()
	if a.Pdeathsig != 0 {
		a.Pdeathsig = syscall.SIGKILL // the first process of a namespace can ignore any other signal
	}
}

// report reads the child's reports about its program.
type report struct {
	pipe  *os.File
	lines *bufio.Reader
}

func (r *report) next(patience time.Duration) (line plan.Report, err error) {
	late := time.AfterFunc(patience, func() { _ = r.pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	text, err := r.lines.ReadBytes('\n')
	if err != nil {
		return line, err
	}
	return line, json.Unmarshal(text, &line)
}

// ended returns the program's exit status; ok is false if the child was killed before it could report one.
func (r *report) ended() (end Status, ok bool) {
	defer r.pipe.Close()
	line, err := r.next(boxPatience)
	if err != nil || line.Ended == nil {
		return Status{}, false
	}
	return Waited(*line.Ended), true
}

// listenerSocket is a pair of sockets for passing a listener out of a network namespace.
type listenerSocket struct{ ours, theirs *os.File }

func newListenerSocket() (*listenerSocket, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	return &listenerSocket{os.NewFile(uintptr(fds[0]), "listener"), os.NewFile(uintptr(fds[1]), "listener")}, nil
}

func (s *listenerSocket) close() { _ = errors.Join(s.ours.Close(), s.theirs.Close()) }

// receive receives the listener, which was sent before the program was started.
func (s *listenerSocket) receive(to func(*os.File)) error {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(s.ours.Fd()), make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return errors.Join(errors.New("no listener was sent"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return errors.Join(errors.New("no listener was sent"), err)
	}
	to(os.NewFile(uintptr(fds[0]), "listener"))
	return nil
}

// statusVar is the environment variable with the descriptor on which an init reports its command's exit
// status.
const statusVar = "UWF_STATUS_FD"

const firstInherited = 3

// startInit starts a child as the init of a pid namespace, if the kernel allows one. The child reports its
// command's status through a pipe, because an init can't terminate itself by a signal.
func startInit(c Command) (*Child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	c.Env = append(slices.Clip(c.Env), statusVar+"="+strconv.Itoa(firstInherited+len(c.Inherit)))
	c.Inherit = append(slices.Clip(c.Inherit), write)
	c.Init, c.namespaces = false, inNamespaces
	child, err := Start(c)
	if err != nil { // containers and some distributions don't allow namespaces
		c.namespaces = nil
		child, err = Start(c)
	}
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	child.ended, child.init = func() (Status, bool) { return reported(read) }, true
	return child, nil
}

// inNamespaces requests the namespaces. An ordinary user needs a user namespace for that, in which the user
// keeps its id; the capability is for mounting /proc.
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

// reported returns the status of an init's command; ok is false if the init was killed first.
func reported(report *os.File) (end Status, ok bool) {
	defer report.Close()
	var raw [4]byte
	if _, err := io.ReadFull(report, raw[:]); err != nil {
		return Status{}, false
	}
	return Waited(binary.NativeEndian.Uint32(raw[:])), true
}

// Init is the child's side of [Command.Init].
type Init struct {
	status  *os.File
	Environ []string // for the command
}

// NewInit returns the Init, or false if this process wasn't started as one. It mounts the namespace's /proc;
// if that fails, programs see the machine's.
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

// Run runs a command in this process's group until it exits, and reports its status. The command gets only
// the standard streams. Its leftover processes are killed: by the kernel when the init of a namespace exits,
// otherwise by this process.
func (i *Init) Run(argv []string) error {
	if err := unix.CloseRange(firstInherited, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	for s := syscall.Signal(1); s <= unix.SIGSYS; s++ {
		if !signal.Ignored(s) { // the whole group gets it, and the command decides
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	// The command runs with this process's privileges, so prevent it from tracing this process or taking its
	// descriptors.
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
