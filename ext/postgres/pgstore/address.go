package pgstore

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

// Address is a validated address of a schema.
type Address struct {
	Schema string
	pool   *pgxpool.Config
}

// settings lists the parameters that an address can contain. All others, especially passwords, must come from
// the environment or from files.
func settings() []string {
	return []string{
		"application_name", "connect_timeout", "host", "pool_max_conns", "port", "schema", "sslcert", "sslkey", "sslmode",
		"sslrootcert", "target_session_attrs",
	}
}

// Config parses an address, postgres://user@host:port/database. Over a network, TLS is required and the
// server's certificate is verified, unless the address sets sslmode. The password comes from PGPASSWORD,
// PGPASSFILE or ~/.pgpass. An address with a password is rejected, and the error doesn't repeat it. Errors
// are [*protocol.Error].
func Config(address string) (*Address, error) {
	u, q, err := parse(address)
	if err != nil {
		return nil, err
	}
	a := &Address{Schema: "uwf"}
	if name := q.Get("schema"); name != "" {
		a.Schema = name
	}
	if !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`).MatchString(a.Schema) {
		return nil, invalid("invalid schema %q: want lower-case letters, digits and _", a.Schema)
	}
	q.Del("schema")
	given := q.Has("sslmode")
	if !given {
		q.Set("sslmode", "verify-full")
	}
	if a.pool, err = config(u, q); err == nil && !given && a.local() {
		q.Set("sslmode", "prefer")
		a.pool, err = config(u, q)
	}
	if err != nil {
		return nil, err
	}
	c := a.pool.ConnConfig
	c.DefaultQueryExecMode = small
	c.RuntimeParams["search_path"] = a.Schema + ", pg_temp"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "uwf"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	return a, nil
}

func parse(address string) (*url.URL, url.Values, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" || u.Opaque != "" || u.Fragment != "" {
		return nil, nil, invalid("invalid address: want postgres://user@host/database") // don't repeat the address, which may contain a password
	}
	if _, has := u.User.Password(); has {
		return nil, nil, invalid("the address contains a password; put it into PGPASSWORD or ~/.pgpass")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, invalid("invalid settings after ? in the address")
	}
	for key := range q {
		if strings.Contains(key, "pass") {
			return nil, nil, invalid("the address has the setting %s; put a password into PGPASSWORD or ~/.pgpass", key)
		}
		if !slices.Contains(settings(), key) {
			return nil, nil, invalid("unknown setting %q in the address: want %s", key, strings.Join(settings(), ", "))
		}
	}
	return u, q, nil
}

// config parses the parameters. Its errors contain no part of the address except these parameters.
func config(u *url.URL, q url.Values) (*pgxpool.Config, error) {
	address := *u
	address.RawQuery = q.Encode()
	c, err := pgxpool.ParseConfig(address.String())
	if err != nil {
		return nil, invalid("the address, or a PG variable: %v", err)
	}
	if !q.Has("pool_max_conns") {
		c.MaxConns = 4
	}
	// Close idle connections quickly: a helper needs none while an agent works, and a database allows far
	// fewer connections than there are steps in flight.
	c.MaxConnIdleTime, c.HealthCheckPeriod = 2*time.Second, time.Second
	return c, nil
}

// local reports whether all hosts are this machine.
func (a *Address) local() bool {
	hosts := []string{a.pool.ConnConfig.Host}
	for _, f := range a.pool.ConnConfig.Fallbacks {
		hosts = append(hosts, f.Host)
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		ip, err := netip.ParseAddr(host)
		return host != "localhost" && !strings.HasPrefix(host, "/") && (err != nil || !ip.IsLoopback())
	})
}

func (a *Address) password() []string {
	if a.pool.ConnConfig.Password == "" {
		return nil
	}
	return []string{a.pool.ConnConfig.Password}
}

func invalid(format string, args ...any) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

func secretsOf(a *Address) *secret.Set { return secret.NewSet(a.password()...) }
