package inside

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// Landlock access rights, by the ABI version that introduced them.
const (
	landlockReads = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFirst = 1<<13 - 1
	landlockFile  = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockScope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// landlock adds a second barrier that denies writes regardless of the mounts. On kernels without Landlock
// only the mounts apply. For programs that create sandboxes it covers only signals and sockets, because a
// file ruleset forbids all mounts.
func landlock(p plan.Plan) error {
	version, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if failed != 0 {
		return nil
	}
	attr := handled(int(version), p.Nest)
	if attr.Handled_access_fs|attr.Scoped == 0 {
		return nil
	}
	set, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if failed != 0 {
		return failed
	}
	if attr.Handled_access_fs != 0 {
		dirs := []string{"/tmp", "/var/tmp", "/dev", "/run", "/proc"}
		for _, m := range p.Mounts {
			if m.Kind == plan.Write || m.Kind == plan.Own {
				dirs = append(dirs, m.Path)
			}
		}
		for _, path := range dirs {
			if err := permit(int(set), path, attr.Handled_access_fs); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if _, _, failed := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); failed != 0 {
		return failed
	}
	return unix.Close(int(set))
}

// handled returns the rights that a Landlock version can restrict. The structure may be longer than the
// kernel expects if the rest is zero.
func handled(version int, nest bool) (attr unix.LandlockRulesetAttr) {
	attr.Handled_access_fs = landlockFirst &^ landlockReads
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if nest {
		attr.Handled_access_fs = 0
	}
	if version >= 6 {
		attr.Scoped = landlockScope
	}
	return attr
}

// permit allows rights at and below a path.
func permit(set int, path string, rights uint64) error {
	fd, err := open(path)
	if err != nil { // such as /var/tmp, if it is a link
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	if !isDir(path) {
		rights &= landlockFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	runtime.KeepAlive(&rule)
	if failed != 0 {
		return failed
	}
	return nil
}

// dropCapabilities drops all capabilities except keep, and prevents regaining them.
func dropCapabilities(keep uint64) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := range 64 {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err == unix.EINVAL {
			break // beyond the last capability of this kernel
		} else if err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for i := range data {
		data[i].Permitted = uint32(keep >> (32 * i))
		data[i].Effective, data[i].Inheritable = data[i].Permitted, data[i].Permitted
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	for c := range 64 { // an ordinary user's program loses them on exec otherwise
		if keep&(1<<c) != 0 {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// loopback brings up the loopback device of the new network.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// listen creates the only way out of the network: a listener for the process outside, which accepts on it. No process
// inside keeps it.
func listen() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, errors.Join(
		unix.Bind(fd, &unix.SockaddrInet4{Port: plan.ListenPort, Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(fd, unix.SOMAXCONN),
	)
}
