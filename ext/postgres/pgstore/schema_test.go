//go:build postgres

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// opening returns the error of opening a schema.
func opening(t *testing.T, query string) error {
	db, err := pgstore.Open(t.Context(), server.Socket("postgres", query), pgstore.Options{})
	if err == nil {
		err = db.Close()
	}
	return err
}

func TestManyMakeTheSchema(t *testing.T) {
	t.Parallel()
	query := fresh()
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = opening(t, query) })
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestVersionsOfTheSchema(t *testing.T) {
	t.Parallel()
	query := fresh()
	address := server.Socket("postgres", query)
	from, to, err := pgstore.Migrate(t.Context(), address, cas.XXH64)
	require.NoError(t, err)
	require.Equal(t, []int{0, pgstore.Version}, []int{from, to})
	db := open(t, query, pgstore.Options{})
	require.Equal(t, cas.XXH64, db.Algorithm(), "who made it has chosen")
	working, leave := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() { // an idle client gives up its connection and doesn't block others
		for working.Err() == nil {
			_, _ = db.Has(working, cas.Hash("0123456789ABC"))
		}
	})
	_, _, err = pgstore.Migrate(t.Context(), address, cas.XXH3)
	leave()
	others.Wait()
	require.ErrorContains(t, err, "is in use")

	query = fresh()
	require.NoError(t, opening(t, query))
	from, to, err = pgstore.Migrate(t.Context(), server.Socket("postgres", query), cas.XXH3)
	require.NoError(t, err)
	require.Equal(t, from, to, "nothing to do")

	sql(t, query, `update format set version = 99`)
	require.NoError(t, opening(t, query), "a newer schema says that this program may work on it")
	sql(t, query, `update format set oldest = 98`)
	err = opening(t, query)
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion})
	require.ErrorContains(t, err, "has version 99, but this program supports 2")
	_, _, err = pgstore.Migrate(t.Context(), server.Socket("postgres", query), cas.XXH3)
	require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}, "it is not touched")

	sql(t, query, `update format set version = 0, oldest = 0`)
	require.ErrorContains(t, opening(t, query), "its owner must run uwf-remote-postgres migrate")
	sql(t, query, `update format set version = 2, oldest = 2, hash = 'sha512'`)
	require.ErrorIs(t, opening(t, query), &protocol.Error{Code: protocol.CodeUnsupportedVersion})
}

// TestDurableAllTheSame checks that commits wait for the disk, whatever the configuration.
func TestDurableAllTheSame(t *testing.T) {
	t.Parallel()
	role := "careless" + strings.TrimPrefix(fresh(), "&schema=")
	sql(t, "&schema=public", fmt.Sprintf(`create role %s login superuser`, role))
	sql(t, "&schema=public", fmt.Sprintf(`alter role %s set synchronous_commit = off`, role))
	db := openAt(t, server.Socket(role, fresh()), pgstore.Options{})
	said, err := db.Setting(t.Context(), "synchronous_commit")
	require.NoError(t, err)
	require.Equal(t, "on", said)
}

// TestLists checks that tens of thousands of threads are listed in pages.
func TestLists(t *testing.T) {
	t.Parallel()
	const count = 30_000
	db := open(t, fresh(), pgstore.Options{})
	title := "a title"
	var all []heads.New
	for i := range count {
		n := heads.New{Head: heads.Head{Thread: fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ6%06d", i), Hash: protocol.HashOf(uint64(i))}}
		if i%10 == 0 {
			n.Facts.Title = &title
		}
		all = append(all, n)
	}
	require.NoError(t, db.AddAll(t.Context(), all))
	require.ErrorIs(t, db.AddAll(t.Context(), append(all[:1:1], heads.New{Head: heads.Head{Thread: "new", Hash: protocol.HashOf(1)}})), heads.ErrExists)
	_, err := db.Head(t.Context(), "new")
	require.ErrorIs(t, err, heads.ErrNoThread, "all or none")

	i := 0
	for h, err := range db.Heads(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, all[i].Head, h)
		i++
	}
	require.Equal(t, count, i)
	i = 0
	for s, err := range db.Remote("test").Threads(t.Context(), remote.Filter{Active: true}) {
		require.NoError(t, err)
		require.Equal(t, all[i].Thread, s.Thread)
		require.Equal(t, all[i].Facts.Title, s.Facts.Title)
		i++
	}
	require.Equal(t, count, i)
	i = 0
	for _, err := range db.Remote("test").Threads(t.Context(), remote.Filter{After: all[17].Thread, Limit: 5000}) {
		require.NoError(t, err)
		i++
	}
	require.Equal(t, 5000, i)
}
