//go:build unix

package pgtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Exec executes statements one by one as a role, to which the superuser switches.
func (s *Server) Exec(ctx context.Context, database, role, statements string) (err error) {
	conn, err := pgconn.Connect(ctx, strings.Replace(s.Socket("postgres", ""), "/postgres?", "/"+database+"?", 1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for statement := range strings.SplitSeq("set role "+role+";"+statements, ";") {
		if _, err := conn.Exec(ctx, statement).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// Shell runs a script as the server's user, with the server's programs on PATH and as the superuser of the
// database.
func (s *Server) Shell(script string) error {
	cmd := s.command("psql") // only for its directory and user
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-euc", script}
	cmd.Env = append(cmd.Environ(), "PATH="+s.bin+":/bin:/usr/bin", "PGHOST="+s.Dir, fmt.Sprintf("PGPORT=%d", s.Port),
		"PGUSER=postgres")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// Strict requires TLS and a password for connections to the loopback address. It returns the certificate of
// the authority in PEM.
func (s *Server) Strict(ctx context.Context, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, errors.Join(
		s.write("server.crt", certificate),
		s.write("server.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		s.write("pg_hba.conf", []byte("local all postgres trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")),
		s.append("postgresql.conf", "ssl = on"),
		s.Halt(syscall.SIGINT), s.Run(ctx),
	)
}

// write replaces a file of the cluster.
func (s *Server) write(name string, data []byte) error {
	name = filepath.Join(s.data(), name)
	if err := os.WriteFile(name, data, 0o600); err != nil || s.cred == nil {
		return err
	}
	return os.Chown(name, int(s.cred.Uid), int(s.cred.Gid))
}
