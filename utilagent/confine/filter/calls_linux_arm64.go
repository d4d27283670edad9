package filter

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// refusedHere lists refused calls that exist only on this architecture.
var refusedHere []uint32

// here adds rules for legacy calls; this architecture has none.
func (f *filter) here() {}
