//go:build !linux

package proc

// lockHolders finds nobody: this system does not show who holds a lock.
func lockHolders(string) ([]int, error) { return nil, nil }

// signalHolders has nobody to signal.
func signalHolders(string, bool) error { return nil }
