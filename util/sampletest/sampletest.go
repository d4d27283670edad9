// Package sampletest picks the cases that a test tries where there are thousands, such as every
// state of a disk after a power cut. The build tag exhaustive tries them all: make torture sets it.
package sampletest

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"
)

// oneIn is how many cases there are for each that is tried.
const oneIn = 20

// New returns a function that reports whether the test tries its next case: the first, and one in
// 20 of the others. The name of the test is the seed, so every run tries the same ones.
func New(t testing.TB) func() bool {
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	random, first := rand.New(rand.NewPCG(name.Sum64(), oneIn)), true
	return func() bool {
		chosen := exhaustive || first || random.IntN(oneIn) == 0
		first = false
		return chosen
	}
}
