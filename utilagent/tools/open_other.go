//go:build !unix

package tools

// openNonblock is not needed on this platform.
const openNonblock = 0
