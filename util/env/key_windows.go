package env

import "strings"

// sameKey compares as Windows does, where PATH is usually called Path.
func sameKey(a, b string) bool { return strings.EqualFold(a, b) }
