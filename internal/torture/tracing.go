package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/united-workforce/uwf/internal/torture/trace"
	"github.com/united-workforce/uwf/util/env"
)

// tracePart runs a program with a fault at one of its system calls, for tests of other modules:
//
//	torture trace -under DIR -at N -fault kill -own -out FILE PROGRAM ARG…
//
// It writes the outcome to FILE as JSON. The exit status is not 0 if nothing was traced.
const tracePart = "trace"

func traced(e env.Env) int {
	flags := flag.NewFlagSet(tracePart, flag.ContinueOnError)
	flags.SetOutput(e.Stderr)
	var plan trace.Plan
	flags.StringVar(&plan.Under, "under", "/", "directory in which changes count")
	flags.IntVar(&plan.At, "at", 0, "number of the call that goes wrong")
	flags.StringVar((*string)(&plan.Fault), "fault", "", "what happens there")
	flags.BoolVar(&plan.Own, "own", false, "count only the calls of the program itself")
	file := flags.String("out", "", "file for the outcome")
	if err := flags.Parse(e.Args); err != nil || flags.NArg() == 0 {
		return 2
	}
	cmd := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Stdin, e.Stdout, e.Stderr
	out, err := trace.Run(cmd, plan)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(out); err == nil {
			err = os.WriteFile(*file, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(e.Stderr, "torture:", err)
		return 1
	}
	return 0
}
