// Command uwf-box sandboxes a program that uwf starts.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	"github.com/united-workforce/uwf/utilagent/box/inside"
)

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		fmt.Println("uwf-box", version())
		return
	}
	os.Exit(inside.Main(os.Stderr))
}

// version returns the version stamped into the binary by "go install".
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
