package bind

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

// become restricts this process and replaces it with the command, or runs the command if this is an init
// process. Landlock comes first, since root can open directories for it that others cannot; the filter comes
// last, since it refuses calls that the other steps need.
func become(r confine.Rules, argv, environ []string) error {
	if r.Profile != confine.Strict && r.Profile != confine.Program {
		return fmt.Errorf("unknown profile %q", r.Profile)
	}
	init, isInit := proc.NewInit(environ)
	if err := restrictPaths(r); err != nil {
		return err
	}
	runtime.LockOSThread() // capabilities and filters belong to a thread; exec keeps this one's
	if err := filter.DropCapabilities(confine.CapabilityBits(r.Keep), false); err != nil {
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
