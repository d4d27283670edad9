//go:build unix

package fsstore

import (
	"errors"
	"os"
	"syscall"
)

// sameFileSystem tells whether two files are on one file system.
func sameFileSystem(a, b string) (bool, error) {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if err := errors.Join(errA, errB); err != nil {
		return false, err
	}
	statA, okA := infoA.Sys().(*syscall.Stat_t)
	statB, okB := infoB.Sys().(*syscall.Stat_t)
	return okA && okB && statA.Dev == statB.Dev, nil
}
