//go:build !windows

package env

func sameKey(a, b string) bool { return a == b }
