//go:build unix

package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// odd puts something else in the place of a file, and says what.
func odd(random *rand.Rand, path string) (what string, err error) {
	if err := os.Remove(path); err != nil {
		return "", err
	}
	switch random.IntN(6) {
	case 0:
		return "a pipe", syscall.Mkfifo(path, 0o600)
	case 1:
		return "a directory", os.MkdirAll(filepath.Join(path, "sub"), 0o700)
	case 2:
		return "a link to a device", os.Symlink("/dev/zero", path)
	case 3:
		return "a link to itself", os.Symlink(filepath.Base(path), path)
	case 4:
		return "nothing", nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", err
	}
	return "200 GB of nothing", os.Truncate(path, 200<<30)
}
