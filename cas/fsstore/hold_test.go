package fsstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// A lock taken before the store exists blocks the collector from the first node on.
func TestHoldOfAStoreToBeMade(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, dir, fsstore.Options{})
	release, err := s.LockShared(ctx)
	require.NoError(t, err)
	released, err := s.LockShared(ctx)
	require.NoError(t, err)
	require.NoError(t, released())
	require.False(t, s.Exists())
	name, err := fsstore.Foreign(dir)
	require.NoError(t, err)
	require.Empty(t, name, "nothing else prevents that the store is made")

	require.NoError(t, s.Put(ctx, castest.Node(t, cas.XXH3, "first")))
	lock := filepath.Join(dir, "gc.lock")
	_, err = durable.TryLock(lock)
	require.ErrorIs(t, err, durable.ErrLocked)
	require.NoError(t, release())
	held, err := durable.TryLock(lock)
	require.NoError(t, err)
	require.NoError(t, held.Unlock())
}

// A store records the homes that have used it.
func TestHomes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	root := t.TempDir()
	own := filepath.Join(root, "own")
	dir := filepath.Join(own, "cas")
	use := func(home string, guest bool) *fsstore.Store {
		s := open(t, dir, fsstore.Options{Home: home, Guest: guest})
		require.NoError(t, s.Put(ctx, castest.Node(t, cas.XXH3, "node")))
		return s
	}
	s := use(own, false)
	homes, err := s.Homes()
	require.NoError(t, err)
	require.Empty(t, homes, "nothing is in the home yet")
	require.NoError(t, os.WriteFile(filepath.Join(own, "registry.yaml"), nil, 0o644))

	team, other := filepath.Join(root, "team"), filepath.Join(root, "other")
	use(team, false)
	use(team, false)
	use(filepath.Join(root, "visitor"), true)
	release, err := open(t, dir, fsstore.Options{Home: other}).LockShared(ctx)
	require.NoError(t, err)
	require.NoError(t, release())
	homes, err = s.Homes()
	require.NoError(t, err)
	require.Equal(t, []string{other, own, team}, homes)
	require.NoError(t, s.ForgetHome(ctx, other))
	homes, err = open(t, dir, fsstore.Options{}).Homes()
	require.NoError(t, err)
	require.Equal(t, []string{own, team}, homes)
	use(other, false)
	homes, err = s.Homes()
	require.NoError(t, err)
	require.Equal(t, []string{other, own, team}, homes, "it is used again")

	made := open(t, filepath.Join(root, "new"), fsstore.Options{Home: team})
	require.NoError(t, made.Make(ctx, 1))
	homes, err = made.Homes()
	require.NoError(t, err)
	require.Equal(t, []string{team}, homes)
}

// A temporary home counts only while a process uses it.
func TestEphemeralHomes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	root := t.TempDir()
	slot := filepath.Join(root, "slot")
	require.NoError(t, os.Mkdir(slot, 0o755))
	lock := filepath.Join(slot, fsstore.EphemeralLock)
	held, err := durable.LockShared(ctx, lock)
	require.NoError(t, err)
	s := open(t, filepath.Join(root, "cas"), fsstore.Options{Home: slot})
	require.NoError(t, s.Put(ctx, castest.Node(t, cas.XXH3, "node")))
	require.NoError(t, held.Unlock())

	homes, err := s.Homes()
	require.NoError(t, err)
	require.Equal(t, []string{slot}, homes, "who puts nodes is in it")
	_, err = durable.TryLock(lock)
	require.ErrorIs(t, err, durable.ErrLocked)

	require.NoError(t, os.RemoveAll(slot))
	homes, err = s.Homes()
	require.NoError(t, err)
	require.Empty(t, homes)

	// An abandoned one counts as little as a deleted one.
	require.NoError(t, os.Mkdir(slot, 0o755))
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	homes, err = s.Homes()
	require.NoError(t, err)
	require.Empty(t, homes)
}

// A store of the original isn't collected, and none of our files are added.
func TestOriginalsRememberNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir := t.TempDir()
	n := castest.Node(t, cas.XXH64, "theirs")
	require.NoError(t, os.WriteFile(filepath.Join(dir, string(n.Hash)+".bin"), cas.MarshalFile(n), 0o644))
	s := open(t, dir, fsstore.Options{Home: t.TempDir()})
	release, err := s.LockShared(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Commit(ctx, castest.Node(t, cas.XXH64, "ours")))
	require.NoError(t, release())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// A damaged record of a home is an error, because its threads need nodes, until the home is recorded again. One that a
// power cut tore isn't: nothing was stored from that home.
func TestDamagedHome(t *testing.T) {
	t.Parallel()
	dir, home := filepath.Join(t.TempDir(), "cas"), filepath.Join(t.TempDir(), "home")
	use := func() *fsstore.Store {
		s := open(t, dir, fsstore.Options{Home: home})
		require.NoError(t, s.Commit(t.Context(), castest.Node(t, cas.XXH3, "node")))
		return s
	}
	s := use()
	findHome(t, dir, home).Flip()
	for range 2 {
		_, err := s.Homes()
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeCorrupt})
		compact(t, s)
		s = open(t, dir, fsstore.Options{})
	}
	homes, err := use().Homes()
	require.NoError(t, err)
	require.Equal(t, []string{home}, homes)

	findHome(t, dir, home).Tear()
	homes, err = open(t, dir, fsstore.Options{}).Homes()
	require.NoError(t, err)
	require.Empty(t, homes)
}
