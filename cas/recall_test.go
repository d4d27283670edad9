package cas_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
)

type countedReader struct {
	cas.Reader
	gets int
}

func (r *countedReader) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	r.gets++
	return r.Reader.Get(ctx, h)
}

// Small nodes are read once; large ones aren't cached, and a missing node can appear later.
func TestRecalling(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH3)
	counted := &countedReader{Reader: s}
	r := cas.Recalling(counted)
	b := cas.NewBatch(s, time.Now)
	small, err := b.Add(t.Context(), protocol.Text("small"))
	require.NoError(t, err)
	large, err := b.Add(t.Context(), protocol.Text(strings.Repeat("x", 2<<20)))
	require.NoError(t, err)
	_, err = r.Get(t.Context(), small)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.NoError(t, b.Commit(t.Context()))

	counted.gets = 0
	for range 3 {
		text, err := cas.Read[protocol.Text](t.Context(), r, small)
		require.NoError(t, err)
		require.EqualValues(t, "small", text)
	}
	require.Equal(t, 1, counted.gets)
	for range 2 {
		_, err = r.Get(t.Context(), large)
		require.NoError(t, err)
	}
	require.Equal(t, 3, counted.gets)
}
