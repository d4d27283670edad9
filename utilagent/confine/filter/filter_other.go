//go:build !linux || (!amd64 && !arm64)

package filter

import "errors"

// Filter is empty, because the system call numbers of this platform are unknown.
type Filter struct{}

// New returns an empty filter.
func New(Rules) Filter { return Filter{} }

// Install always fails.
func (Filter) Install() error {
	return errors.New("system calls are not filtered on this architecture")
}
