//go:build !windows

package cliagent

// maxArgument bounds a prompt on the command line: Linux allows 128 KiB per argument.
const maxArgument = 100 << 10
