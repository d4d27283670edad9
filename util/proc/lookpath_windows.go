package proc

import "strings"

// isPathKey: Windows folds the case of variables and usually writes "Path".
func isPathKey(key string) bool { return strings.EqualFold(key, "PATH") }
