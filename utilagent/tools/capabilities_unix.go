//go:build unix

package tools

import (
	"os"
	"syscall"
)

// neededCapabilities returns the capabilities that root needs to write to a workspace owned by another user,
// such as a host directory in a container.
func neededCapabilities(workspace string) []string {
	info, err := os.Stat(workspace)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return []string{"dac_override"}
	}
	return nil
}
