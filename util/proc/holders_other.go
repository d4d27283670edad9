//go:build !linux

package proc

// Holders finds nobody: this system does not show who holds a lock.
func Holders(string) []int { return nil }

// lockHolders finds nobody: this system does not show who holds a lock.
func lockHolders(string) ([]int, error) { return nil, nil }

// signalHolders has nobody to signal.
func signalHolders(string, bool) error { return nil }
