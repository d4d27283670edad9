//go:build unix

package config

// modesMatter tells that the mode of a file says who can read it.
const modesMatter = true
