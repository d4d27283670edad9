//go:build !windows

package cliagent

// maxArgument is how long a prompt on a command line may be: Linux takes 128 KiB
// in one argument.
const maxArgument = 100 << 10
