package bind

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// kept are the capabilities by the names that confine.Capabilities lists.
func kept(name string) (bit int, ok bool) {
	switch name {
	case "chown":
		return unix.CAP_CHOWN, true
	case "dac_override":
		return unix.CAP_DAC_OVERRIDE, true
	case "fowner":
		return unix.CAP_FOWNER, true
	case "fsetid":
		return unix.CAP_FSETID, true
	case "net_bind_service":
		return unix.CAP_NET_BIND_SERVICE, true
	case "net_raw":
		return unix.CAP_NET_RAW, true
	}
	return 0, false
}

// dropCapabilities takes from this thread all capabilities but some, also those
// that it could get by starting a program: root's program gets what is in the
// bounding set, as far as it had it before (no_new_privs is set by then).
func dropCapabilities(keep []string) error {
	var mask uint64
	for _, name := range keep {
		bit, ok := kept(name)
		if !ok {
			return fmt.Errorf("%q is not a capability that can be kept", name)
		}
		mask |= 1 << bit
	}
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
