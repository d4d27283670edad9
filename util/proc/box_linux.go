package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// boxPatience is how long the child may take to make what its program sees.
const boxPatience = 30 * time.Second

// boxCapabilities are those that the child needs to do its part. An ordinary user's program loses
// all others when it starts.
func boxCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP,
		unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN,
	}
}

// start starts the child and waits until it has started its program, or says why not.
func (b *Box) start(c Command) (*Child, error) {
	text, err := inMemory(b.Plan)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	defer text.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	given := []*os.File{text, write}
	if b.Status != nil {
		given = append(given, b.Status)
	}
	var listener *listenerSocket
	if b.Listener != nil {
		if listener, err = newListenerSocket(); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), read.Close(), write.Close())
		}
		defer listener.close()
		given = append(given, listener.theirs)
	}
	c.Inherit = append(given, c.Inherit...)
	cmd := &exec.Cmd{Path: c.Path, Args: []string{c.Path}, Dir: "/", Env: []string{}}
	setStreams(cmd, c)
	said := &report{read, bufio.NewReader(read)}
	child := &Child{cmd: cmd, release: func() {}, ended: said.ended}
	c.namespaces, c.Session = b.attributes, true // there is no terminal in it
	if c.WithParent {
		child.group, child.release, err = startTied(cmd, c)
	} else {
		child.group, err = startInGroup(cmd, c)
	}
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return nil, &BoxError{Stage: "namespaces", Err: err}
	}
	first, err := said.next(boxPatience)
	if err == nil && first.Started != "" && listener != nil {
		if err = listener.receive(b.Listener); err != nil {
			first.Stage, first.Error = "network", err.Error()
		}
	}
	if err == nil && first.Started != "" {
		return child, nil
	}
	err = errors.Join(child.group.kill(), err)
	_ = cmd.Wait() // it ends with a status that says nothing
	child.release()
	_ = read.Close()
	switch {
	case first.Stage == plan.StageStart:
		return nil, fmt.Errorf("%w", refusal{first.Error, syscall.Errno(first.Errno)})
	case first.Stage == "":
		return nil, &BoxError{Stage: "report", Err: fmt.Errorf("%s said nothing: %w", c.Path, err)}
	}
	return nil, &BoxError{Stage: first.Stage, Err: refusal{first.Error, syscall.Errno(first.Errno)}}
}

// attributes ask for the namespaces. A user keeps its id there.
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
		a.Pdeathsig = syscall.SIGKILL // the first process of a namespace need not heed another signal
	}
}

// inMemory is a file that lies nowhere.
func inMemory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "plan")
	if _, err := f.Write(text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.Seek(0, 0)
	return f, err
}

// report is what a child says of the program that it runs.
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

// ended returns how the program has ended; ok is false if the child was killed before.
func (r *report) ended() (end Status, ok bool) {
	defer r.pipe.Close()
	line, err := r.next(boxPatience)
	if err != nil || line.Ended == nil {
		return Status{}, false
	}
	return Waited(*line.Ended), true
}
