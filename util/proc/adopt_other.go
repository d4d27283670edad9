//go:build !linux

package proc

// Adopt makes this process the parent of what its children leave behind. False: only
// Linux can do that.
func Adopt() bool { return false }

// Children are the ids of the processes whose parent is this one, where the system
// tells: only Linux does.
func Children() []int { return nil }

// KillChildren kills all children of this process but some, where [Adopt] works.
func KillChildren([]int) (int, error) { return 0, nil }
