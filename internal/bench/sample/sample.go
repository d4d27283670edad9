// Package sample has contents that all sides of a comparison store, so that they
// store the same.
package sample

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Text is what the node with a number says: some 250 bytes that compress well.
func Text(n int) string {
	return fmt.Sprintf("node %d says something, but not much: %0200d", n, n)
}

// words are what Prose is made of; its bytes compress as those of programs and
// talk about them do.
var words = strings.Fields(`the of to and in is that for it as was with be by on not he his but at are this have
from or had an they which one you were all her she there would their we him been has when who will no more if
out so up said what its about than into them can only other time new some could these two may first then do
func return error string int struct range nil err if else for package import type context store node hash step
thread role status reviewer developer planner read write file test failed passed value key list map path line`)

// Prose is text of about n bytes; equal seeds give equal text.
func Prose(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(" \n"[r.IntN(12)/11])
	}
	return b.String()
}
