package bind

import (
	"fmt"
	"runtime"
	"syscall"

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
