//go:build !windows

package proc

func isPathKey(key string) bool { return key == "PATH" }
