// Package sample has contents that both sides of a comparison store, so that they
// store the same.
package sample

import "fmt"

// Text is what the node with a number says: some 250 bytes that compress well.
func Text(n int) string {
	return fmt.Sprintf("node %d says something, but not much: %0200d", n, n)
}
