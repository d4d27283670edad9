package env

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enough refuses limits under which the runtime of Go would end the process in the
// middle of its work, with a page of its own insides. Under the lowest it does so
// before main, and nothing can be said.
func enough() error {
	for _, l := range []struct {
		resource int
		least    uint64
		unit     uint64
		what     string
	}{
		{unix.RLIMIT_NOFILE, 16, 1, "%d open files (ulimit -n), and needs %d"},
		{unix.RLIMIT_NPROC, 32, 1, "%d processes and threads (ulimit -u), and needs %d"},
		{unix.RLIMIT_AS, 960 << 20, 1 << 10, "%d KB of address space (ulimit -v), and needs %d"},
		{unix.RLIMIT_DATA, 96 << 20, 1 << 10, "%d KB of data (ulimit -d), and needs %d"},
	} {
		var has unix.Rlimit
		if unix.Getrlimit(l.resource, &has) != nil || has.Cur >= l.least || l.resource == unix.RLIMIT_NPROC && os.Geteuid() == 0 {
			continue // root may have any number of processes
		}
		return fmt.Errorf("this process is limited to "+l.what, has.Cur/l.unit, l.least/l.unit)
	}
	return nil
}
