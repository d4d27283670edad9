package filter

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// DropCapabilities drops all capabilities of this thread except keep, as bits, including those it could gain by executing
// a program: root gets the bounding set, limited to what it had before (if no_new_privs is set). An ordinary user's
// programs get those of keep only if they are passed on.
func DropCapabilities(keep uint64, passOn bool) error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // missing before Linux 4.3
	for c := range 64 {
		if keep&(1<<c) != 0 {
			continue
		}
		// Without the permission to do this, there are no capabilities to lose: see below.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // beyond the last capability of this kernel
		} else if err != nil && passOn {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	for i := range data {
		kept := data[i].Permitted & uint32(keep>>(32*i))
		if data[i] = (unix.CapUserData{Effective: kept, Permitted: kept}); passOn {
			data[i].Inheritable = kept
		}
	}
	if err == nil {
		err = unix.Capset(&header, &data[0])
	}
	for c := 0; c < 64 && passOn && err == nil; c++ {
		if keep&(1<<c) != 0 {
			err = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(c), 0, 0)
		}
	}
	if err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
