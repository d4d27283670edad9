package fsstore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
)

// firstVersion writes a store of version 1 and returns the path of a node's file.
func firstVersion(t *testing.T, dir string, all []cas.Node) (file func(cas.Node) string) {
	t.Helper()
	write(t, filepath.Join(dir, "format.json"), `{"version":1,"hash":"xxh3","layout":"fan2","flush":"auto"}`)
	file = func(n cas.Node) string {
		return filepath.Join(dir, "nodes", string(n.Hash[:2]), string(n.Hash)+".bin")
	}
	for _, n := range all {
		write(t, file(n), string(cas.MarshalFile(n)))
	}
	return file
}

// convert packs what is kept, checks the store, and packs it again, which removes the files.
func convert(t *testing.T, s *fsstore.Store, keep func(cas.Hash) bool) error {
	t.Helper()
	for _, check := range []bool{true, false} {
		c, err := s.Compact(t.Context(), time.Now().Add(time.Hour), false)
		if err != nil {
			return err
		}
		if err = c.Write(t.Context(), keep); err == nil {
			err = c.Finish(t.Context(), func() error { return nil }, keep)
		}
		if ended := c.Release(); err != nil || ended != nil {
			return err
		}
		if err := s.Checked(); check && err != nil {
			return err
		}
	}
	return nil
}

// Whatever operation of a conversion fails, or is the first one after a kill, no node is lost, and repeating it completes
// it.
func TestInterruptedConversion(t *testing.T) {
	t.Parallel()
	for n := range 200 {
		dir := t.TempDir()
		all := nodes(t, cas.XXH3, 12)
		firstVersion(t, dir, all)
		disk := &full{FS: fast{durable.OS()}, left: n / 2, killed: n%2 == 1}
		every := func(cas.Hash) bool { return true }
		failed := convert(t, open(t, dir, fsstore.Options{FS: disk}), every)
		requireNodes(t, open(t, dir, fsstore.Options{}), all)
		s := open(t, dir, fsstore.Options{})
		require.NoError(t, s.Commit(t.Context(), all...), "writers continue")
		require.NoError(t, convert(t, s, every))
		require.NoError(t, convert(t, s, every), "if the files were packed only now")
		requireNodes(t, open(t, dir, fsstore.Options{}), all)
		require.NoDirExists(t, filepath.Join(dir, "nodes"))
		if failed == nil && disk.killed {
			require.Greater(t, n, 20, "every operation has failed once")
			return
		}
	}
}

// A conversion keeps what is damaged as it is, and redacted nodes redacted. It leaves out what nothing needs.
func TestConversionOfDamage(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	all := nodes(t, cas.XXH3, 5)
	file := firstVersion(t, dir, all)
	damaged, redacted, secret, garbage := all[1], all[2], all[3], all[4]
	flipAt(t, file(damaged), len(cas.MarshalFile(damaged))/2)
	tombstone, err := cas.MarshalTombstone(cas.Tombstone{Hash: redacted.Hash, Type: redacted.Type, Reason: "before"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file(redacted), tombstone, 0o600))

	s := open(t, dir, fsstore.Options{})
	require.NoError(t, s.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: secret.Hash, Type: secret.Type}))
	require.NoFileExists(t, file(secret))
	castest.RequireErased(t, dir, secret.Payload)
	for range 3 {
		s = open(t, dir, fsstore.Options{})
		requireNodes(t, s, all[:1])
		_, err = s.Get(ctx, damaged.Hash)
		require.ErrorAs(t, err, new(*cas.CorruptError))
		for _, n := range []cas.Node{redacted, secret} {
			require.NoError(t, s.Put(ctx, n))
			_, err = s.Get(ctx, n.Hash)
			require.ErrorAs(t, err, new(*cas.RedactedError))
		}
		require.NoError(t, convert(t, s, func(h cas.Hash) bool { return h != garbage.Hash }))
	}
	require.NoDirExists(t, filepath.Join(dir, "nodes"))
	_, err = s.Get(ctx, garbage.Hash)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.NoError(t, s.Commit(ctx, damaged))
	requireNodes(t, s, []cas.Node{damaged})
}
