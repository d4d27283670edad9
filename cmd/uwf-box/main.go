// It needs no limit of processors, for which the runtime would read files of the cgroup at each start.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command uwf-box sandboxes a program that uwf starts.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/united-workforce/uwf/util/gocache"
	"github.com/united-workforce/uwf/utilagent/box/inside"
)

func main() {
	if slices.Equal(os.Args[1:], []string{"--version"}) {
		fmt.Println("uwf-box", version())
		return
	}
	if len(os.Args) == 3 && os.Args[1] == gocache.Argument {
		os.Exit(goCache(os.Args[2]))
	}
	os.Exit(inside.Main(os.Args[1:], os.Stderr))
}

// goCache runs inside a sandbox.
func goCache(users string) int {
	own := os.Getenv("GOCACHE")
	if own == "" {
		general, _ := os.UserCacheDir() // as the go command, which would fail itself
		own = filepath.Join(general, "go-build")
	}
	if err := gocache.Serve(os.Stdin, os.Stdout, own, users, time.Now); err != nil {
		fmt.Fprintln(os.Stderr, "uwf-box: serve the go command's cache:", err)
		return 1
	}
	return 0
}

// version returns the version stamped into the binary by "go install".
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
