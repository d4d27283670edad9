package seal_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
)

func openStore(t *testing.T) *fsstore.Store {
	t.Helper()
	s, err := fsstore.Open(t.Context(), filepath.Join(t.TempDir(), "cas"), fsstore.Options{})
	require.NoError(t, err)
	return s
}

// chain puts a detail with this number of turns.
func chain(t *testing.T, s cas.Store, turns int) cas.Hash {
	t.Helper()
	b := cas.NewBatch(s, func() time.Time { return time.UnixMilli(1) })
	hashes := []cas.Hash{}
	for i := range turns {
		h, err := b.Add(t.Context(), protocol.Turn{Index: i, Role: protocol.TurnUser, Content: fmt.Sprint("turn ", i)})
		require.NoError(t, err)
		hashes = append(hashes, h)
	}
	h, err := b.Add(t.Context(), protocol.Detail{Capture: protocol.CaptureTurns, Turns: hashes})
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))
	return h
}

// A seal is computed as docs/storage.md specifies.
func TestByHand(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH3)
	require.NoError(t, s.Put(t.Context(), s.Kinds().Meta(), s.Kinds().Schema(protocol.Type{Kind: protocol.KindText, Version: 1})))
	payload, err := cas.Encode("hello")
	require.NoError(t, err)
	text := cas.Node{Type: s.Kinds().Hash(protocol.KindText), Payload: payload}
	text.Hash = cas.XXH3.Sum(text.Type, payload)
	require.NoError(t, s.Put(t.Context(), text))

	of := func(n cas.Node, below ...[]byte) []byte {
		h := sha256.New()
		fmt.Fprintf(h, "uwf seal 1\n%s%s%s", n.Type, binary.BigEndian.AppendUint64(nil, uint64(len(n.Payload))), n.Payload)
		for _, b := range below {
			h.Write(b)
		}
		return h.Sum(nil)
	}
	want := of(text, of(s.Kinds().Schema(protocol.Type{Kind: protocol.KindText, Version: 1}), of(s.Kinds().Meta())))
	got, err := seal.New(s, seal.Options{}).Seal(t.Context(), text.Hash)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x", want), got.String())
}

// Any change below changes the seal; a node's timestamp doesn't.
func TestWhatItCovers(t *testing.T) {
	t.Parallel()
	seals := map[cas.Seal]int{}
	for n := range 5 {
		s := openStore(t)
		got, err := seal.New(s, seal.Options{}).Seal(t.Context(), chain(t, s, n))
		require.NoError(t, err)
		seals[got]++
	}
	require.Len(t, seals, 5)
}

// Two contents with the same hash have different seals.
func TestCollisions(t *testing.T) {
	t.Parallel()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		one, two := castest.Collision(t, a)
		require.Equal(t, one.Hash, two.Hash)
		require.NotEqual(t, cas.SealOf(one, nil), cas.SealOf(two, nil))
	}
}

// Sealing a chain that has grown reads only the new nodes.
func TestIncremental(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t)
	first := chain(t, s, 20)
	k := seal.NewKeeper(s)
	want, err := k.Seal(ctx, first)
	require.NoError(t, err)
	require.NoError(t, k.Flush(ctx))
	all := k.New
	require.Greater(t, all, 20)

	more := chain(t, s, 21)
	count := &counter{Store: s}
	got, err := seal.New(count, seal.Options{Known: s.Seal}).Seal(ctx, more)
	require.NoError(t, err)
	require.LessOrEqual(t, count.gets, 6, "the detail, twice, one turn, and types")
	fresh, err := seal.New(s, seal.Options{}).Seal(ctx, more)
	require.NoError(t, err)
	require.Equal(t, fresh, got)

	k = seal.NewKeeper(s)
	again, err := k.Seal(ctx, first)
	require.NoError(t, err)
	require.Equal(t, want, again)
	require.Zero(t, k.New)
}

// counter counts reads.
type counter struct {
	*fsstore.Store
	gets int
}

func (c *counter) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	c.gets++
	return c.Store.Get(ctx, h)
}

// A redaction with a seal changes nothing; without one, nothing above it can be sealed.
func TestRedacted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t)
	root := chain(t, s, 3)
	n, err := s.Get(ctx, root)
	require.NoError(t, err)
	refs, err := graph.Refs(ctx, s, n)
	require.NoError(t, err)
	sealer := seal.New(s, seal.Options{})
	want, err := sealer.Seal(ctx, root)
	require.NoError(t, err)
	for _, c := range []struct {
		seal cas.Seal
		ok   bool
	}{{sealer.Of(refs[1]), true}, {cas.Seal{}, false}} {
		stone := cas.Tombstone{Hash: refs[1], Type: n.Type, Seal: c.seal}
		require.NoError(t, s.Redact(ctx, func() error { return nil }, stone))
		got, err := seal.New(s, seal.Options{}).Seal(ctx, root)
		if c.ok {
			require.NoError(t, err)
			require.Equal(t, want, got)
			continue
		}
		require.True(t, seal.IsUnsealed(err), "%v", err)
	}
}

// A long chain causes no deep recursion, and a missing node is reported.
func TestMissing(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	root := chain(t, s, 3)
	n, err := s.Get(t.Context(), root)
	require.NoError(t, err)
	refs, err := graph.Refs(t.Context(), s, n)
	require.NoError(t, err)
	castest.FindRecord(t, s.Dir(), refs[2]).Lose()
	_, err = seal.New(s, seal.Options{}).Seal(t.Context(), root)
	require.ErrorIs(t, err, cas.ErrNotFound)
	var visit *graph.VisitError
	require.ErrorAs(t, err, &visit)
	require.Equal(t, root, visit.By)
}
