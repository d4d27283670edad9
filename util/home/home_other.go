//go:build !windows

package home

// userDirVar is the environment variable with the user's home directory.
const userDirVar = "HOME"
