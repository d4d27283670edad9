//go:build !windows

package fsstore

// nodePerm protects nodes from accidental changes.
const nodePerm = 0o444
