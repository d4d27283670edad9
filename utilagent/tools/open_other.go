//go:build !unix

package tools

// openNonblock is not needed: files of a workspace do not block here.
const openNonblock = 0
