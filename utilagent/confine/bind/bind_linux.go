package bind

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

// become restricts this process and replaces it with the command, or runs the command if this is an init
// process. Landlock comes first, since root can open directories for it that others cannot; the filter comes
// last, since it refuses calls that the other steps need.
func become(r confine.Rules, argv, environ []string) error {
	if r.Profile != confine.Strict && r.Profile != confine.Program {
		return fmt.Errorf("unknown profile %q", r.Profile)
	}
	init, isInit := proc.NewInit(environ)
	if err := restrictPaths(r); err != nil {
		return err
	}
	runtime.LockOSThread() // capabilities and filters belong to a thread; exec keeps this one's
	if err := dropCapabilities(r.Keep); err != nil {
		return err
	}
	calls := filter.New(filter.Rules{Shares: r.IPC, Namespaces: r.Profile == confine.Program, NoUnixSockets: r.NoUnixSockets})
	if err := calls.Install(); err != nil && r.Whole {
		return err
	}
	if isInit {
		return init.Run(argv)
	}
	if err := syscall.Exec(argv[0], argv, environ); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	return nil
}

// dropCapabilities drops all capabilities of this thread except keep, including those it could gain by
// executing a program: root gets the bounding set, limited to what it had before (no_new_privs is set by
// then).
func dropCapabilities(keep []string) error {
	mask := confine.CapabilityBits(keep)
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // missing before Linux 4.3
	for c := range 64 {
		if mask&(1<<c) != 0 {
			continue
		}
		// Without the permission to do this, there are no capabilities to lose: see below.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // beyond the last capability of this kernel
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for i := range data {
		data[i].Permitted &= uint32(mask >> (32 * i))
		data[i].Effective, data[i].Inheritable = data[i].Permitted, 0
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
