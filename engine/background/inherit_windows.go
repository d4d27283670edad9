package background

import "os"

// inheritedAs is the handle that an inherited file has in a child: the same.
func inheritedAs(f *os.File) uintptr { return f.Fd() }
