//go:build !windows

package agentproc

func isPathKey(key string) bool { return key == "PATH" }
