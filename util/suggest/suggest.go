// Package suggest finds the word that someone probably meant.
package suggest

// Nearest returns up to max candidates close to word, nearest first.
func Nearest(word string, candidates []string, max int) []string { panic("unwritten") }
