package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// listenerSocket is a pair of sockets over which a listener comes out of a network.
type listenerSocket struct{ ours, theirs *os.File }

func newListenerSocket() (*listenerSocket, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	return &listenerSocket{os.NewFile(uintptr(fds[0]), "listener"), os.NewFile(uintptr(fds[1]), "listener")}, nil
}

func (s *listenerSocket) close() { _ = errors.Join(s.ours.Close(), s.theirs.Close()) }

// receive takes the listener, which was sent before the program was started.
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
