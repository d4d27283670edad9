//go:build !windows

package original

// nodePerm protects nodes from accidental changes.
const nodePerm = 0o444
