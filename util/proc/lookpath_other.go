//go:build !windows

package proc

func isPathKey(key string) bool { return key == "PATH" }

// homeVar is the environment variable with the user's home directory.
const homeVar = "HOME"
