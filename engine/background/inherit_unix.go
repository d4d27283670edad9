//go:build unix

package background

import (
	"os"
)

// inheritedAs is the descriptor that the first inherited file has in a child.
func inheritedAs(*os.File) uintptr { return 3 }
