// Package sampletest selects cases for a test that has thousands, such as every state of a disk after a power
// cut. With the build tag exhaustive, which make torture sets, all cases are tested.
package sampletest

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"
)

// oneIn is the number of cases per selected case.
const oneIn = 20

// New returns a function that reports whether to test the next case: the first one, and one in 20 of the
// others. The name of the test is the seed, so every run selects the same cases.
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
