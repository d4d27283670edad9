package agentkit

import (
	"cmp"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
)

// Process is what an agent knows about its process.
type Process struct {
	Args           []string  // without the program's name
	Environ        []string  // KEY=value; the last one of a key wins
	Dir            string    // absolute working directory
	Stdout, Stderr io.Writer // nil: what is written is discarded

	os *env.Env // set by [OS]
}

// OS returns the facts of the running process. It fails if the limits of the
// process are too narrow to work in.
func OS() (Process, error) {
	e, err := env.OS()
	return Process{Args: e.Args, Environ: e.Environ, Dir: e.Dir, Stdout: e.Stdout, Stderr: e.Stderr, os: &e}, err
}

// real tells whether the agent is the running process, with its signals and what
// it has inherited.
func (p Process) real() bool { return p.os != nil }

// env is the process for the packages below. One that is not real has no program
// that could be started again.
func (p Process) env() env.Env {
	e := env.Env{Stdin: strings.NewReader(""), Now: time.Now, Rand: rand.Reader}
	if p.real() {
		e = *p.os
	}
	e.Args, e.Environ, e.Dir = p.Args, p.Environ, p.Dir
	e.Stdout, e.Stderr = cmp.Or(p.Stdout, io.Discard), cmp.Or(p.Stderr, io.Discard)
	return e
}
