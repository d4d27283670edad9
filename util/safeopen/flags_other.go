//go:build !unix

package safeopen

// Here opening a path does not wait, and a link that takes a file's place between
// two looks at it cannot be told.
const (
	openNonblock = 0
	openNoFollow = 0
)
