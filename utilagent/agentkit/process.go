package agentkit

import (
	"cmp"
	"io"

	"github.com/united-workforce/uwf/util/env"
)

// Process is what an agent knows about its process.
type Process struct {
	Args           []string  // without the program's name
	Environ        []string  // KEY=value; the last one of a key wins
	Dir            string    // absolute working directory
	Stdout, Stderr io.Writer // nil: what is written is discarded

	// real: the agent is the running process, with its signals and what it has
	// inherited.
	real bool
	exe  string // "": there is no program that could be started again
}

// OS returns the facts of the running process. It fails if the limits of the
// process are too narrow to work in.
func OS() (Process, error) {
	e, err := env.OS()
	return Process{Args: e.Args, Environ: e.Environ, Dir: e.Dir, Stdout: e.Stdout, Stderr: e.Stderr, real: true, exe: e.Exe}, err
}

// env is the process for the packages below, with the system's clock and randomness.
func (p Process) env() (env.Env, error) {
	e, err := env.OS()
	e.Args, e.Environ, e.Dir, e.Exe = p.Args, p.Environ, p.Dir, p.exe
	e.Stdout, e.Stderr = cmp.Or(p.Stdout, io.Discard), cmp.Or(p.Stderr, io.Discard)
	return e, err
}
