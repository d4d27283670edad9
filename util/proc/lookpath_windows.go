package proc

import "strings"

// isPathKey: Windows folds the case of variables and usually writes "Path".
func isPathKey(key string) bool { return strings.EqualFold(key, "PATH") }

// homeVar names the user's own directory.
const homeVar = "USERPROFILE"
