package confine

import "golang.org/x/sys/unix"

// Level is the version of Landlock that the kernel offers; 0: none.
func Level() int {
	version, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if failed != 0 {
		return 0
	}
	return int(version)
}
