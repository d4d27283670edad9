//go:build !unix

package agentkit

// keepLock has nothing to do: handles are inherited only by children that are
// given them.
func keepLock(string) {}
