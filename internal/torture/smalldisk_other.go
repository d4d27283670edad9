//go:build !linux

package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/united-workforce/uwf/util/env"
)

func inNamespace(*exec.Cmd) bool { return false }

// onSmallDisk is never started here: inNamespace says so.
func onSmallDisk(_ context.Context, e env.Env) int {
	fmt.Fprintln(e.Stderr, "needs Linux")
	return noMount
}
