//go:build postgres

package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
)

// server is shared by all tests of the package; each has its own schema.
var server *pgtest.Server

func TestMain(m *testing.M) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	var err error
	if server, err = pgtest.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	stop()
	status := m.Run()
	if err := server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

var schemas atomic.Int64

// fresh returns a query with an unused schema.
func fresh() string { return fmt.Sprintf("&schema=s%d", schemas.Add(1)) }

// open opens a schema.
func open(t *testing.T, query string, o pgstore.Options) *pgstore.DB {
	t.Helper()
	return openAt(t, server.Socket("postgres", query), o)
}

func openAt(t *testing.T, address string, o pgstore.Options) *pgstore.DB {
	t.Helper()
	db, err := pgstore.Open(t.Context(), address, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// proxied returns a schema behind a proxy that cuts connections.
func proxied(t *testing.T, query string) (*pgtest.Proxy, string) {
	t.Helper()
	p, err := pgtest.NewProxy(server, 1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, server.TCP("postgres", p.Port, strings.TrimPrefix(query, "&"))
}

// sql executes a statement directly.
func sql(t *testing.T, query, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.Socket("postgres", ""))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "set search_path = "+strings.TrimPrefix(query, "&schema="))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}
