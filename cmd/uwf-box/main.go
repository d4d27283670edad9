// Command uwf-box holds back a program that uwf starts.
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

// version is what "go install" stamped into the binary.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
