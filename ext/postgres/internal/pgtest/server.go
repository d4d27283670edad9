//go:build unix

// Package pgtest runs a real Postgres server for tests, in a temporary directory, on a socket and a loopback
// port. If the test runs as root, the server runs as another user, since initdb refuses root.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Server is a Postgres cluster. Its superuser and its database are both called postgres.
type Server struct {
	Dir  string // contains the socket, the data and the log
	Port int    // port on the loopback address, and in the name of the socket

	bin  string
	cred *syscall.Credential
	cmd  *exec.Cmd
	done chan struct{}
}

// Start creates and starts a cluster. settings are lines for postgresql.conf.
func Start(ctx context.Context, settings ...string) (s *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	s = &Server{Dir: dir, bin: bin}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if err := s.become(); err != nil {
		return nil, err
	}
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	if out, err := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	conf := append([]string{
		"listen_addresses = '127.0.0.1'", fmt.Sprintf("port = %d", s.Port), fmt.Sprintf("unix_socket_directories = '%s'",
			s.Dir),
		"shared_buffers = 32MB", "max_connections = 60", "dynamic_shared_memory_type = mmap",
	}, settings...)
	if err := s.append("postgresql.conf", conf...); err != nil {
		return nil, err
	}
	return s, s.Run(ctx)
}

// programs returns the directory of the server's programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", fmt.Errorf("postgres not found: %w", err)
		}
		found = []string{path}
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 if it is not a number
	return n
}

// become determines the user that runs the server.
func (s *Server) become() error {
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		if who, err = user.Lookup("nobody"); err != nil {
			return err
		}
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return err
	}
	s.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.Dir, uid, gid)
}

// freePort returns a free port. Another process could take it before the server does, but no other test looks
// for one.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

// append appends lines to a file of the cluster.
func (s *Server) append(name string, lines ...string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// Run starts the server, also after it was stopped, and waits until it accepts connections.
func (s *Server) Run(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	s.cmd = s.command("postgres", "-D", s.data())
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var failed error
	done, cmd := make(chan struct{}), s.cmd
	s.done = done
	go func() {
		failed = cmd.Wait()
		close(done)
	}()
	for {
		conn, err := pgconn.Connect(ctx, s.Socket("postgres", ""))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-done:
			s.cmd = nil
			return fmt.Errorf("postgres: %w\n%s", failed, s.Log())
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w\n%s", err, s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Halt stops the server like pg_ctl stop: SIGINT for fast, SIGQUIT for immediate, which is equivalent to a
// crash.
func (s *Server) Halt(how syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(how)
	<-s.done
	s.cmd = nil
	return err
}

// Stop stops the server and deletes its directory.
func (s *Server) Stop() error { return errors.Join(s.Halt(syscall.SIGQUIT), os.RemoveAll(s.Dir)) }

// Log returns the server's log.
func (s *Server) Log() []byte {
	log, _ := os.ReadFile(filepath.Join(s.Dir, "log")) // the log is only for display
	if max := 4000; len(log) > max {
		log = log[len(log)-max:]
	}
	return bytes.TrimSpace(log)
}

// Socket returns the address of a schema for a role over the socket.
func (s *Server) Socket(role, query string) string {
	return fmt.Sprintf("postgres://%s@/postgres?host=%s&port=%d%s", role, s.Dir, s.Port, query)
}

// TCP returns the address of a schema for a role over the loopback address.
func (s *Server) TCP(role string, port int, query string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?%s", role, port, strings.TrimPrefix(query, "&"))
}
