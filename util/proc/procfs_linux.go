package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// scans bounds how often killSession searches again for processes started in the meantime.
const scans = 10

// killSession kills every process of the session led by the group's leader, in any group.
func (g group) killSession() error {
	for range scans {
		pids, err := living(func(s stat) bool { return s.session == int(g) })
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return os.NewSyscallError("kill", err)
			}
		}
	}
	return nil
}

// gone reports whether only zombies remain, which stay if init doesn't reap, as in many containers.
func (g group) gone() bool {
	if err := syscall.Kill(-int(g), 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	pids, err := living(func(s stat) bool { return s.group == int(g) })
	return err == nil && len(pids) == 0
}

// living returns the ids of matching processes that aren't zombies.
func living(match func(stat) bool) ([]int, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var living []int
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has exited
		}
		if s, ok := parseStat(string(text)); ok && match(s) && s.state != "Z" && s.state != "X" {
			living = append(living, pid)
		}
	}
	return living, nil
}

// look reads part of /proc/<pid>/stat. A birth is in ticks since boot.
func look(pid int) stat {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}
	}
	s, _ := parseStat(string(text))
	return s
}

// parseStat parses "pid (name) state parent group session …". The name can contain anything, including
// parentheses.
func parseStat(text string) (stat, bool) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return stat{}, false
	}
	parent, err0 := strconv.Atoi(fields[1])
	group, err1 := strconv.Atoi(fields[2])
	session, err2 := strconv.Atoi(fields[3])
	s := stat{state: fields[0], parent: parent, group: group, session: session}
	const startTime = 19
	if len(fields) > startTime {
		s.birth = fields[startTime]
	}
	return s, errors.Join(err0, err1, err2) == nil
}

// processes returns the ids of all processes.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Holders returns the ids of other processes known to hold a lock on the file at path. Only Linux supports
// it.
func Holders(path string) []int {
	holders, err := lockHolders(path)
	if err != nil {
		return nil
	}
	return holders
}

// lockHolders returns the ids of other processes that hold a lock on the file at path. It excludes processes
// that only have the file open to wait for the lock, and processes that we aren't allowed to inspect.
func lockHolders(path string) ([]int, error) {
	file, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var holders []int
	for _, pid := range pids {
		if pid != os.Getpid() && holdsLock("/proc/"+strconv.Itoa(pid), file) {
			holders = append(holders, pid)
		}
	}
	return holders, nil
}

// holdsLock checks the open files of a process, which can exit at any time.
func holdsLock(process string, file fs.FileInfo) bool {
	fds, err := os.ReadDir(process + "/fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		open, err := os.Stat(process + "/fd/" + fd.Name())
		if err != nil || !os.SameFile(open, file) {
			continue
		}
		info, err := os.ReadFile(process + "/fdinfo/" + fd.Name())
		if err == nil && bytes.Contains(info, []byte("\nlock:")) {
			return true
		}
	}
	return false
}

// signalHolders searches for the holders each time, so that a process that no longer holds the lock isn't
// signaled.
func signalHolders(path string, hard bool) error {
	holders, err := lockHolders(path)
	if err != nil {
		return err
	}
	for _, pid := range holders {
		err = errors.Join(err, signalHolder(pid, hard))
	}
	return err
}

// signalHolder signals a process, and its group if it leads one.
func signalHolder(pid int, hard bool) error {
	g, err := groupOf(pid)
	if leads, _ := syscall.Getpgid(pid); err == nil && leads == pid {
		return g.end(hard)
	}
	sig := syscall.SIGTERM
	if hard {
		sig = syscall.SIGKILL
	}
	err = errors.Join(syscall.Kill(pid, sig), syscall.Kill(pid, syscall.SIGCONT))
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// KillMarked kills every other process that was started with this entry (KEY=value) in its environment:
// descendants of a child that moved to other groups and sessions and whose parents are gone. It returns their
// number. It does nothing on systems that don't show environments.
func KillMarked(entry string) (int, error) { return Moment{}.KillMarked(entry, 0) }

// Moment is a moment in the order in which the kernel gives numbers to processes.
type Moment struct{ last int }

// Now returns the current moment.
func Now() Moment {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return Moment{}
	}
	last, _ := strconv.Atoi(fields[len(fields)-1]) // on error it is 0: unknown
	return Moment{last}
}

// KillMarked is like the function, but needn't look at the processes that existed at m. child was started since.
func (m Moment) KillMarked(entry string, child int) (int, error) {
	killed := map[int]bool{} // dying processes are found again
	for scan := range scans {
		pids, err := m.younger(child)
		if err != nil {
			return len(killed), err
		}
		found, before := false, len(killed)
		for _, pid := range pids {
			switch err := killMarked(pid, entry); {
			case err == nil:
				found, killed[pid] = true, true
			case !errors.Is(err, os.ErrProcessDone):
				return len(killed), os.NewSyscallError("kill", err)
			}
		}
		if !found {
			break
		}
		if len(killed) == before { // they are dying, which takes a while on a busy machine
			time.Sleep(time.Millisecond << scan)
		}
	}
	return len(killed), nil
}

// Within returns m if process ids can't wrap around within d, and the zero value otherwise. A hostile program can start
// processes until they do, and leave one whose id is above the last. By default there are at least 32,768 ids. Starting
// a process takes 20 µs, and a thread 5.
func (m Moment) Within(d time.Duration) Moment {
	const inOrder = 50 * time.Millisecond
	if 0 <= d && d <= inOrder {
		return m
	}
	return Moment{}
}

// younger returns ids that include those of all processes since m. The kernel gives them in order, and begins again
// at the end: then, and if it doesn't show its last one, these are the ids of all processes.
func (m Moment) younger(child int) (pids []int, err error) {
	last := Now().last
	if m.last <= 0 || child <= m.last || last < child {
		return processes()
	}
	const few = 200 // as long as looking for each takes less than listing all
	if last-m.last > few {
		pids, err = processes()
		return slices.DeleteFunc(pids, func(pid int) bool { return pid <= m.last }), err
	}
	for pid := m.last + 1; pid <= last; pid++ {
		pids = append(pids, pid)
	}
	return pids, nil
}

// killMarked kills a process that has the entry, or returns [os.ErrProcessDone] if it doesn't.
func killMarked(pid int, entry string) error {
	if pid == os.Getpid() || !isMarked(pid, entry) {
		return os.ErrProcessDone
	}
	p, err := os.FindProcess(pid) // from here on its id can't be reused
	if err != nil {
		return os.ErrProcessDone
	}
	defer func() { _ = p.Release() }() // it isn't our child
	if !isMarked(pid, entry) {
		return os.ErrProcessDone
	}
	return p.Kill()
}

// isMarked reports whether a process has the entry; a zombie has no environment.
func isMarked(pid int, entry string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // it has exited, or belongs to another user
	}
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if string(variable) == entry {
			return true
		}
	}
	return false
}

// startTied starts a child that is asked to exit when this process dies. The kernel detects that by the end
// of the thread that started the child, so the thread stays until release is called.
func startTied(cmd *exec.Cmd, c Command) (g group, release func(), err error) {
	started, over := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		g, err = startInGroup(cmd, c)
		close(started)
		if err == nil {
			<-over
		}
	}()
	<-started
	return g, func() { close(over) }, err
}

func tie(a *syscall.SysProcAttr, c Command) {
	if c.WithParent {
		a.Pdeathsig = syscall.SIGTERM
	}
	if c.namespaces != nil {
		c.namespaces(a)
	}
}

// keepNice applies this process's niceness to the child's session. If the kernel divides processor time
// between sessions first, inherited niceness counts only within a session. If keepNice fails, the child is
// only faster.
func keepNice(pid int) {
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if nice := 20 - raw; err == nil && nice > 0 { // the system call returns 20 minus the niceness
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
	}
}

// childPatience is the time that KillChildren keeps trying if a process forks faster than it is killed. Such a
// process dies eventually, because each attempt can hit it before its next fork.
const childPatience = 3 * time.Second

// Adopt permanently makes this process, instead of init, the parent of its children's leftover processes, so
// that [Children] finds them regardless of their environment, group and session. It returns false if that
// isn't supported; only Linux does.
func Adopt() bool {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// Children returns the ids of this process's children, including those that have exited but weren't waited
// for, whose ids therefore can't be reused. It reads /proc only if there is one: the list of children that the
// kernel offers can omit some while others exit.
func Children() []int {
	if !hasChildren() {
		return nil
	}
	pids, err := processes()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	return slices.DeleteFunc(pids, func(pid int) bool { return look(pid).parent != self })
}

// hasChildren asks the kernel without waiting for any child.
func hasChildren() bool {
	return !errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

// KillChildren kills all children of this process except those in but, and processes that become its children
// as a result, until none is left. It waits for them, so no other code must. It returns how many were still
// running, and [ErrAlive] if some survive.
func KillChildren(but []int) (int, error) {
	killed := map[int]bool{}
	left := 0
	_, _ = waitUntil(context.Background(), childPatience, func() bool {
		left = 0
		for _, pid := range Children() {
			if slices.Contains(but, pid) {
				continue
			}
			left++
			if ended, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); ended == pid {
				continue // its children are now ours: search again
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				killed[pid] = true
			}
		}
		return left == 0
	})
	if left > 0 {
		return len(killed), errors.Join(ErrAlive, errors.New(strconv.Itoa(left)+" processes"))
	}
	return len(killed), nil
}
