//go:build !unix

package careful

import "io/fs"

// Owner is the id of the user to whom a file belongs. ok is false if that cannot
// be told, as here.
func Owner(fs.FileInfo) (id int, ok bool) { return 0, false }
