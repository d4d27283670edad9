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

// become binds this process and replaces it, or runs the command if this is an init.
// Landlock comes first, since root opens directories for it that others could not; the
// filter comes last, since it refuses some of what the others need.
func become(r confine.Rules, argv, environ []string) error {
	if r.Profile != confine.Strict && r.Profile != confine.Program {
		return fmt.Errorf("there is no profile %q", r.Profile)
	}
	init, isInit := proc.NewInit(environ)
	if err := restrictPaths(r); err != nil {
		return err
	}
	runtime.LockOSThread() // capabilities and filters are a thread's; exec keeps this one's
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

// dropCapabilities takes from this thread all capabilities but some, also those
// that it could get by starting a program: root's program gets what is in the
// bounding set, as far as it had it before (no_new_privs is set by then).
func dropCapabilities(keep []string) error {
	mask := confine.CapabilityBits(keep)
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // Linux before 4.3 has none
	for c := range 64 {
		if mask&(1<<c) != 0 {
			continue
		}
		// Whoever may not do this has no capabilities to lose: see below.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
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
