package bind

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/utilagent/confine"
)

// devices can be written by every command.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/random", "/dev/urandom"}

// become binds this process and replaces it. The library's best effort would
// also accept a kernel without Landlock, so that is ruled out before.
func become(r confine.Rules, argv, environ []string) error {
	if confine.Level() == 0 {
		return confine.ErrUnavailable
	}
	// One call for everything: each makes a layer, and a layer that says nothing
	// about moving files between directories forbids it. Nothing is said about
	// the network, since what could be forbidden there is easily got around.
	c, err := landlock.NewConfig(landlock.V6.HandledAccessFS, landlock.V6.Scoped)
	if err != nil {
		return err
	}
	err = c.BestEffort().Restrict(
		landlock.RODirs("/"),
		landlock.RWDirs(r.Dirs...).WithRefer().IgnoreIfMissing(),
		landlock.RWFiles(append(r.Files, devices...)...).IgnoreIfMissing(),
	)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // capabilities are a thread's; exec keeps this one's
	dropCapabilities()
	if err := syscall.Exec(argv[0], argv, environ); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	return nil
}

// dropCapabilities takes from root what would let it read the memory and the
// environment of every process, whatever Landlock says (Linux 6.15 and later
// ask for them first). Others have none of them: that is what the errors say.
func dropCapabilities() {
	for _, c := range []uintptr{unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
}
