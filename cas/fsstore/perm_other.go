//go:build !windows

package fsstore

// nodePerm keeps a person from changing a node by accident.
const nodePerm = 0o444
