package filter

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// refusedHere are calls that only this architecture has.
var refusedHere []uint32

// here judges the older forms of calls, of which there are none.
func (f *filter) here() {}
