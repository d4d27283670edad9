package env

import "strings"

// sameKey ignores case, as Windows does; PATH is usually spelled Path there.
func sameKey(a, b string) bool { return strings.EqualFold(a, b) }
