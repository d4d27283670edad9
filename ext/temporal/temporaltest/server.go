// Package temporaltest runs a real Temporal server in a test's directory, with SQLite or Postgres as the
// database. "make test-temporal" builds the server.
package temporaltest

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
)

//go:embed server.yaml
var configuration string

// Server is a Temporal server. Its data survives a kill.
type Server struct {
	Address string
	binary  string
	dir     string
	process *exec.Cmd
}

// Start starts a server with SQLite that runs until the test ends.
func Start(t testing.TB) *Server { return StartOn(t, nil) }

// StartOn starts a server with its data in Postgres, or in SQLite if postgres is nil.
func StartOn(t testing.TB, postgres *Postgres) *Server {
	t.Helper()
	s := &Server{binary: tool(t, "temporal-server"), dir: t.TempDir()}
	ports := freePorts(t, 9)
	s.Address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	data := map[string]any{"Port": ports, "Dir": s.dir}
	if postgres != nil {
		data["Postgres"] = postgres.prepare(t)
	}
	var text bytes.Buffer
	require.NoError(t, template.Must(template.New("").Parse(configuration)).Execute(&text, data))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "server.yaml"), text.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "dynamic.yaml"), []byte(dynamic), 0o600))
	t.Cleanup(func() { s.Kill(t) })
	s.Restart(t)
	dialled := s.Dial(t)
	defer dialled.Close()
	_, err := dialled.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: client.DefaultNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // until all of its services know the namespace
		_, err := dialled.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	return s
}

// dynamic removes the rate limits for a client.
const dynamic = `frontend.namespaceRPS: [{value: 100000}]
frontend.namespaceCount: [{value: 100000}]
history.rps: [{value: 100000}]
matching.rps: [{value: 100000}]
system.namespaceCacheRefreshInterval: [{value: 1s}]
`

// Restart starts the server, or starts it again, and waits until it accepts connections.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	out, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	s.process = exec.Command(s.binary, "--config-file", filepath.Join(s.dir, "server.yaml"), "--allow-no-auth", "start")
	s.process.Dir, s.process.Stdout, s.process.Stderr = s.dir, out, out
	require.NoError(t, s.process.Start())
	require.Eventually(t, func() bool {
		dialled, err := client.DialContext(t.Context(), s.options())
		if err == nil {
			dialled.Close()
		}
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond, "it does not answer: %s", s.log())
}

// Kill kills the server.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGKILL)
	_ = s.process.Wait()
	s.process = nil
}

// Dial connects to the server.
func (s *Server) Dial(t testing.TB) client.Client {
	t.Helper()
	dialled, err := client.DialContext(context.WithoutCancel(t.Context()), s.options())
	require.NoError(t, err)
	return dialled
}

func (s *Server) options() client.Options {
	return client.Options{HostPort: s.Address, Identity: "test",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}
}

func (s *Server) log() string {
	const most = 4000
	text, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
	return string(text[max(0, len(text)-most):])
}

// tool returns the path of one of Temporal's programs.
func tool(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), ".tmp", "tools", name)
	require.FileExists(t, path, "make test-temporal builds it")
	return path
}

// freePorts returns free ports. Temporal's tables in Postgres cannot store larger ones.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	const least, most = 1 << 14, 1<<15 - 1
	for len(ports) < n {
		port := least + rand.IntN(most-least)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		ports = append(ports, port)
	}
	return ports
}

// Root returns the root directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	for ; !exists(filepath.Join(dir, ".ci", "run")); dir = filepath.Dir(dir) {
		require.NotEqual(t, dir, filepath.Dir(dir), "the test does not run in the repository")
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
