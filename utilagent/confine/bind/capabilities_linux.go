package bind

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/utilagent/confine"
)

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
