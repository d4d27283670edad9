package inside

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// listen makes the one way out of the network: a listener that is accepted on outside, sent there
// over a socket. Nobody inside keeps either.
func listen(socket int) error {
	defer func() { _ = unix.Close(socket) }()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return errors.Join(
		unix.Bind(fd, &unix.SockaddrInet4{Port: plan.ListenPort, Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(fd, unix.SOMAXCONN),
		unix.Sendmsg(socket, []byte{1}, unix.UnixRights(fd), nil, 0),
	)
}
