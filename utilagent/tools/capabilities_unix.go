//go:build unix

package tools

import (
	"os"
	"syscall"
)

// neededCapabilities are those without which root could not write to a workspace
// that is somebody else's, such as a directory of the host in a container.
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
