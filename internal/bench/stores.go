package main

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// storeRows hold that reading a node costs the same however many there are.
func (b *bench) storeRows() []row {
	sizes := []int{1_000, 100_000}
	if b.full {
		sizes = append(sizes, 1_000_000)
	}
	return []row{grows("ocas get", "nodes", 0.05, sizes, func(n int) side { return timed(b.get(n)) })}
}

// textHash is the hash of the text with a number, in a store of ours.
func textHash(number int) cas.Hash {
	payload, _ := cas.Encode(text(number)) // a string has an encoding
	return cas.XXH3.Sum(cas.NewKinds(cas.XXH3).Hash(protocol.KindText), payload)
}

// get reads a node of a store of n nodes, which no home uses.
func (b *bench) get(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		dir, err := fixture(b, fmt.Sprintf("a store of %d nodes", n), func() (string, error) {
			dir := b.path(fmt.Sprint("store-", n))
			return dir, fill(ctx, dir, n)
		})
		if err != nil {
			return err
		}
		return silent(b.command(ctx, b.path("nobody"), b.program("uwf"), "--ocas-home", dir, "cas", "get", string(textHash(0))))
	}
}
