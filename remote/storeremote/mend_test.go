package storeremote_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/gitobject"
)

// A damaged node counts as missing, and any client can store it again, even several at once. The same holds
// for objects, but their damage is found when they are read.
func TestRepaired(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "team")
	open := func() *storeremote.Remote {
		r, err := storeremote.Open(ctx, dir, storeremote.Options{Hash: cas.XXH3, Program: "test", Now: time.Now})
		require.NoError(t, err)
		return r
	}
	c := remotetest.NewChain(t, cas.XXH3, "p", 2)
	c.Push(open(), c.Head())
	damage := func(path, content string) {
		require.NoError(t, os.Chmod(path, 0o600))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	bad := c.Heads[1]
	record := castest.FindRecord(t, filepath.Join(dir, "cas"), bad)
	record.Flip()
	missing, err := open().Missing(ctx, c.All(c.Head()))
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{bad}, missing)
	errs := make(chan error)
	for range 4 {
		go func() {
			_, err := open().Put(ctx, []remote.Record{c.Record(bad)})
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
	missing, err = open().Missing(ctx, c.All(c.Head()))
	require.NoError(t, err)
	require.Empty(t, missing)

	o := remote.Object{ID: gitobject.ID(gitobject.File, []byte("x"), "sha1"), Kind: gitobject.File, Content: []byte("x")}
	require.NoError(t, open().PutObjects(ctx, []remote.Object{o}))
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			damage(path, "damaged")
		}
		return err
	}))
	for _, err := range open().GetObjects(ctx, []protocol.Tree{o.ID}) {
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeCorrupt})
	}
	require.NoError(t, open().PutObjects(ctx, []remote.Object{o}))
	for got, err := range open().GetObjects(ctx, []protocol.Tree{o.ID}) {
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
}
