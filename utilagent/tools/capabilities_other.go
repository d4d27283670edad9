//go:build !unix

package tools

func neededCapabilities(string) []string { return nil }
