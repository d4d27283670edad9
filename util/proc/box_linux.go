package proc

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// boxPatience is the timeout for setting up the child's namespaces.
const boxPatience = 30 * time.Second

// boxKind holds what a uwf-box must be started with.
type boxKind struct {
	path    string
	network bool
	creates bool  // see [Box.Creates]
	owner   Owner // zero: none
	tied    bool  // see [Command.WithParent]
}

// Ahead is a uwf-box that starts before its plan is known, because a plan takes about as long as that.
type Ahead struct {
	kind   boxKind
	start  func() (*waiting, error) // waits until it has started
	mounts *os.File                 // list of mounts, opened before the child started; nil if that failed
}

// StartAhead starts a uwf-box for a later [Box.Ahead]. It exits with this process.
func StartAhead(path string, b Box, withParent bool) *Ahead {
	a := &Ahead{kind: b.kind(Command{Path: path, WithParent: withParent})}
	a.start = sync.OnceValues(a.kind.start)
	// Package os would poll it itself, and then nobody else learns that mounts have changed.
	if fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		a.mounts = os.NewFile(uintptr(fd), "mountinfo")
	}
	go func() { _, _ = a.start() }() // whoever takes it starts another one instead
	return a
}

// take returns the child unless it is of another kind, or did not start. Otherwise it ends it.
func (a *Ahead) take(kind boxKind) *waiting {
	if a == nil {
		return nil
	}
	defer a.mounts.Close()
	w, err := a.start()
	if err != nil || !w.taken.CompareAndSwap(false, true) {
		return nil
	}
	if a.kind == kind && a.seesMounts() {
		return w
	}
	_ = w.discard()
	return nil
}

// seesMounts reports whether nothing was mounted or unmounted since the child started. Unless mounts are shared, as
// systemd does, the child doesn't see it, and the program would write to the directory below.
func (a *Ahead) seesMounts() bool {
	if a.mounts == nil {
		return false
	}
	changed := []unix.PollFd{{Fd: int32(a.mounts.Fd()), Events: unix.POLLPRI}}
	n, err := unix.Poll(changed, 0)
	return n == 0 && err == nil
}

// Discard ends the child if no command has taken it. a may be nil.
func (a *Ahead) Discard() { _ = a.take(boxKind{}) } // which no child is

// waiting is a uwf-box that waits for its plan.
type waiting struct {
	child    *Child
	socket   *os.File
	lines    *bufio.Reader
	listener *os.File // received from the child; nil if none was
	taken    atomic.Bool
}

func (b *Box) kind(c Command) boxKind {
	kind := boxKind{path: c.Path, network: b.Network, creates: b.Creates, tied: c.WithParent}
	if b.Owner != nil {
		kind.owner = *b.Owner
	}
	return kind
}

// start starts a child that waits for its plan.
func (k boxKind) start() (*waiting, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(fds[0], true) // without deadlines otherwise
	w := &waiting{socket: os.NewFile(uintptr(fds[0]), "socket")}
	w.lines = bufio.NewReader(w)
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	cmd := &exec.Cmd{Path: k.path, Args: []string{k.path}, Dir: "/", Env: []string{}}
	if k.creates {
		cmd.Args = append(cmd.Args, plan.Create, strconv.FormatBool(k.network))
	}
	w.child = &Child{cmd: cmd, session: true}
	w.child.ended = w.ended
	c := Command{Inherit: []*os.File{theirs}, Session: true, WithParent: k.tied, namespaces: k.attributes} // it has no terminal
	w.child.group, w.child.release, err = startChild(cmd, c)
	_ = theirs.Close()
	if err != nil {
		_ = w.socket.Close()
		return nil, err
	}
	if !k.creates {
		err = k.mapIDs(w.child.Pid())
	}
	if err != nil { // also if it has crashed, which whoever waits for its report finds
		crashed := func() bool { return look(w.child.Pid()).state == "Z" }
		if ok, _ := waitUntil(context.Background(), killedWait, crashed); !ok {
			return nil, errors.Join(err, w.discard())
		}
	}
	return w, nil
}

// discard ends a child whose program has not started.
func (w *waiting) discard() error {
	err := w.child.group.kill()
	_ = w.child.cmd.Wait()
	w.child.release()
	_ = w.socket.Close()
	return err
}

// start starts the child's program, or returns an error.
func (b *Box) start(c Command) (*Child, error) {
	kind := b.kind(c)
	w := b.Ahead.take(kind)
	ahead, err := w != nil, error(nil)
	if !ahead {
		w, err = kind.start()
	}
	content, unplanned := b.Plan()
	if err != nil {
		return nil, &BoxError{Stage: "namespaces", Err: err}
	}
	var first plan.Report
	if unplanned == nil {
		if err = w.send(content, b.Status, c); err == nil || errors.Is(err, unix.EPIPE) { // it may say why it ended
			first, err = w.report(boxPatience)
		}
	}
	if err == nil && first.Started != "" && b.Listener != nil && w.listener == nil {
		first = plan.Report{Stage: "network", Error: "no listener was sent"}
	}
	if err == nil && first.Started != "" {
		if b.Listener != nil {
			b.Listener(w.listener)
		}
		if b.Soon {
			w.child.soon = w.ended
		} else if mounts, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", w.child.Pid())); err == nil {
			release := w.child.release // the child's end would wait until they are unmounted
			w.child.release = func() { release(); _ = mounts.Close() }
		}
		return w.child, nil
	}
	if notKilled := w.discard(); notKilled != nil {
		err = notKilled
	}
	switch {
	case unplanned != nil:
		return nil, unplanned
	case first.Stage == plan.StageStart:
		return nil, fmt.Errorf("%w", refusal{first.Error, syscall.Errno(first.Errno)})
	case first.Stage != "":
		return nil, &BoxError{Stage: first.Stage, Err: refusal{first.Error, syscall.Errno(first.Errno)}}
	case ahead: // it was killed while it waited
		b.Ahead = nil
		return b.start(c)
	}
	return nil, &BoxError{Stage: "report", Err: fmt.Errorf("%s %w (%v; %w)", c.Path, ErrBoxSilent, w.child.cmd.ProcessState, err)}
}

// send sends the plan with the files of a command. The child reports what is wrong if it cannot read it.
func (w *waiting) send(content []byte, status *os.File, c Command) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := append([]*os.File{c.Stdin, c.Stdout, c.Stderr, status}, c.Inherit...)
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(cmp.Or(f, null).Fd())
	}
	late := time.AfterFunc(boxPatience, func() { _ = w.socket.SetWriteDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	sent := 0
	err = w.do(func(fd int) (err error) {
		sent, err = unix.SendmsgN(fd, content, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return os.NewSyscallError("sendmsg", err)
	})
	runtime.KeepAlive(files)
	if err == nil {
		_, _ = w.socket.Write(content[sent:])
		err = w.do(func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	}
	return err
}

// do calls f with the descriptor of the socket.
func (w *waiting) do(f func(fd int) error) (err error) {
	raw, failed := w.socket.SyscallConn()
	if failed == nil {
		failed = raw.Control(func(fd uintptr) { err = f(int(fd)) })
	}
	return errors.Join(failed, err)
}

// attributes requests the namespaces. The child shares this process's memory until its program starts, so that no page
// is copied. That's why its ids can be mapped only afterwards.
func (k boxKind) attributes(a *syscall.SysProcAttr) {
	if !k.creates {
		n := plan.Namespaces(k.network)
		a.Cloneflags, a.AmbientCaps = n.Cloneflags|unix.CLONE_VM|unix.CLONE_VFORK, n.AmbientCaps
	}
	if a.Pdeathsig != 0 {
		a.Pdeathsig = syscall.SIGKILL // the first process of a namespace can ignore any other signal
	}
}

// mapIDs lets the user keep its id in the child's namespace, as well as the owner.
func (k boxKind) mapIDs(pid int) error {
	uid, gid := os.Geteuid(), os.Getegid()
	uids, gids, groups := fmt.Sprintf("%d %[1]d 1\n", uid), fmt.Sprintf("%d %[1]d 1\n", gid), "deny"
	if o := k.owner; o != (Owner{}) && o.UID != uid {
		uids += fmt.Sprintf("%d %[1]d 1\n", o.UID)
	}
	if o := k.owner; o != (Owner{}) && o.GID != gid {
		gids, groups = gids+fmt.Sprintf("%d %[1]d 1\n", o.GID), "allow"
	}
	for _, f := range [][2]string{{"uid_map", uids}, {"setgroups", groups}, {"gid_map", gids}} {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, f[0]), []byte(f[1]), 0); err != nil {
			return err
		}
	}
	return nil
}

// report reads a report of the child about its program. A patience of 0 is endless.
func (w *waiting) report(patience time.Duration) (line plan.Report, err error) {
	if patience > 0 {
		late := time.AfterFunc(patience, func() { _ = w.socket.SetReadDeadline(time.Unix(1, 0)) })
		defer late.Stop()
	}
	text, err := w.lines.ReadBytes('\n')
	if err != nil {
		return line, err
	}
	return line, json.Unmarshal(text, &line)
}

// ended returns the program's exit status; ok is false if the child was killed before it could report one.
func (w *waiting) ended() (end Status, ok bool) {
	defer w.socket.Close()
	line, err := w.report(0)
	if err != nil || line.Ended == nil {
		return Status{}, false
	}
	return Waited(*line.Ended), true
}

// Read implements io.Reader. It keeps a descriptor that comes with the data.
func (w *waiting) Read(b []byte) (n int, err error) {
	raw, err := w.socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	oob, more := make([]byte, unix.CmsgSpace(4)), 0
	waited := raw.Read(func(fd uintptr) bool {
		n, more, _, _, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = errors.Join(waited, err); err == nil && n == 0 {
		err = io.EOF
	}
	messages, _ := unix.ParseSocketControlMessage(oob[:more]) // none if they are malformed
	for _, m := range messages {
		if fds, failed := unix.ParseUnixRights(&m); failed == nil && len(fds) == 1 {
			w.listener = os.NewFile(uintptr(fds[0]), "listener")
		}
	}
	return max(n, 0), err
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
