//go:build postgres

package pgstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/headstest"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			castest.TestStore(t, func(t *testing.T) cas.Store { return open(t, fresh(), pgstore.Options{Hash: a}) })
		})
	}
}

func TestHeads(t *testing.T) {
	t.Parallel()
	headstest.RunForget(t, open(t, fresh(), pgstore.Options{Upkeep: true}).Owner())
	headstest.Run(t, func(t *testing.T) heads.Heads { return open(t, fresh(), pgstore.Options{}) })
}

func TestRemote(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
		query := fresh()
		return func(t testing.TB) remote.Remote {
			db, err := pgstore.Open(t.Context(), server.Socket("postgres", query), pgstore.Options{Hash: a})
			require.NoError(t, err)
			return db.Remote("pgstore")
		}
	})
}

func TestUpkeep(t *testing.T) {
	t.Parallel()
	remotetest.RunUpkeep(t, func(t *testing.T, a cas.Algorithm) (remotetest.Open, remotetest.Upkeep) {
		query := fresh()
		owner := open(t, query, pgstore.Options{Hash: a}).Owner()
		open := func(t testing.TB) remote.Remote {
			db, err := pgstore.Open(t.Context(), server.Socket("postgres", query), pgstore.Options{Hash: a})
			require.NoError(t, err)
			return db.Remote("pgstore")
		}
		remove := func(thread string) error {
			_, err := owner.Remove(t.Context(), thread)
			return err
		}
		return open, remotetest.Upkeep{Remove: remove, Redact: func(thread string, h cas.Hash, reason string) error {
			_, err := owner.RedactNode(t.Context(), thread, h, redact.Options{Reason: reason, Now: time.Now})
			return err
		}}
	})
}

// The same suite, with connections that are cut all the time.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	cut := func(t *testing.T, a cas.Algorithm) *pgstore.DB {
		query := fresh()
		open(t, query, pgstore.Options{Hash: a}) // creates the schema
		proxy, address := proxied(t, query)
		db := openAt(t, address, pgstore.Options{})
		proxy.CutWithin(6000)
		t.Cleanup(func() { t.Logf("%d connections were cut", proxy.Cuts()) })
		return db
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		castest.TestStore(t, func(t *testing.T) cas.Store { return cut(t, cas.XXH3) })
	})
	t.Run("heads", func(t *testing.T) {
		t.Parallel()
		headstest.Run(t, func(t *testing.T) heads.Heads { return cut(t, cas.XXH3) })
	})
	t.Run("remote", func(t *testing.T) {
		t.Parallel()
		remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
			query := fresh()
			open(t, query, pgstore.Options{Hash: a})
			proxy, address := proxied(t, query)
			proxy.CutWithin(20000)
			return func(t testing.TB) remote.Remote {
				db, err := pgstore.Open(t.Context(), address, pgstore.Options{})
				require.NoError(t, err)
				return db.Remote("pgstore")
			}
		})
	})
}
