//go:build !windows

package proc

func isPathKey(key string) bool { return key == "PATH" }

// homeVar names the user's own directory.
const homeVar = "HOME"
