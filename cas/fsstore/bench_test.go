package fsstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
)

func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	s := open(b, b.TempDir(), fsstore.Options{})
	n := castest.Node(b, cas.XXH3, make([]any, 500))
	require.NoError(b, s.Put(ctx, n))
	for b.Loop() {
		if _, err := s.Get(ctx, n.Hash); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	ctx := context.Background()
	s := open(b, b.TempDir(), fsstore.Options{})
	i := 0
	for b.Loop() {
		if err := s.Put(ctx, castest.Node(b, cas.XXH3, fmt.Sprint("node ", i))); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// A step: four new nodes, and six existing schemas.
func BenchmarkCommit(b *testing.B) {
	ctx := context.Background()
	s := open(b, b.TempDir(), fsstore.Options{})
	var present []cas.Node
	for i := range 6 {
		present = append(present, castest.Node(b, cas.XXH3, fmt.Sprint("schema ", i)))
	}
	require.NoError(b, s.Commit(ctx, present...))
	i := 0
	for b.Loop() {
		nodes := present
		for range 4 {
			i++
			nodes = append(nodes, castest.Node(b, cas.XXH3, fmt.Sprint("node ", i)))
		}
		if err := s.Commit(ctx, nodes...); err != nil {
			b.Fatal(err)
		}
	}
}
