package pgstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"postgres://uwf:hunter2@db/uwf":                     "contains a password",
		"postgres://uwf:hunter2@db:port/uwf":                "invalid address",
		"postgres://uwf:hun%zzter2@db/uwf":                  "invalid address",
		"postgres://uwf@db/uwf?password=hunter2":            "the setting password",
		"postgres://uwf@db/uwf?sslpassword=hunter2":         "the setting sslpassword",
		"postgres://uwf@db/uwf?passfile=hunter2":            "the setting passfile",
		"postgres://uwf@db/uwf?synchronous_commit=off":      `unknown setting "synchronous_commit"`,
		"postgres://uwf@db/uwf?options=-c%20fsync%3Doff":    `unknown setting "options"`,
		"postgres://uwf@db/uwf?service=other":               `unknown setting "service"`,
		"postgres://uwf@db/uwf?schema=a;drop":               "invalid settings",
		"postgres://uwf@db/uwf?schema=a%22b":                "lower-case letters",
		"postgres://uwf@db/uwf?sslmode=hunter3":             "sslmode",
		"postgres://uwf@db/uwf?sslrootcert=/not/there/at/x": "sslrootcert",
		"mysql://uwf@db/uwf":                                "invalid address",
		"host=db password=hunter2":                          "invalid address",
		"":                                                  "invalid address",
	} {
		_, err := Config(address)
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeInvalid}, address)
		require.ErrorContains(t, err, why, address)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestTLSIsVerified(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://uwf@db.example/uwf", "postgres://uwf@127.0.0.1,db.example/uwf", "postgres://uwf@/uwf?host=db.example",
		"postgres://uwf@db.example/uwf?sslmode=verify-full", "postgres://uwf@[2001:db8::1]/uwf",
	} {
		a, err := Config(address)
		require.NoError(t, err, address)
		c := a.pool.ConnConfig
		require.NotNil(t, c.TLSConfig, address)
		require.False(t, c.TLSConfig.InsecureSkipVerify, address)
		require.NotEmpty(t, c.TLSConfig.ServerName, address)
		for _, f := range c.Fallbacks {
			require.NotNil(t, f.TLSConfig, "%s: nothing goes on without", address)
			require.False(t, f.TLSConfig.InsecureSkipVerify, address)
		}
	}
	for _, address := range []string{
		"postgres://uwf@localhost/uwf", "postgres://uwf@127.0.0.7/uwf", "postgres://uwf@[::1]/uwf", "postgres://uwf@/uwf?host=/run/pg",
		"postgres://uwf@db.example/uwf?sslmode=disable",
	} {
		a, err := Config(address)
		require.NoError(t, err, address)
		plain := a.pool.ConnConfig.TLSConfig == nil
		for _, f := range a.pool.ConnConfig.Fallbacks {
			plain = plain || f.TLSConfig == nil
		}
		require.True(t, plain, address)
	}
}

func TestSchemaOfAnAddress(t *testing.T) {
	t.Parallel()
	a, err := Config("postgres://uwf@db.example/uwf?schema=team_2")
	require.NoError(t, err)
	require.Equal(t, "team_2", a.Schema)
	require.Equal(t, "team_2, pg_temp", a.pool.ConnConfig.RuntimeParams["search_path"], "nothing is found elsewhere")
	require.NotContains(t, a.pool.ConnConfig.RuntimeParams, "schema")
}
