package temporaltest

import (
	"bufio"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Postgres is a real server, run by ext/postgres/internal/pgserve. It is not safe for concurrent use.
type Postgres struct {
	Address string
	in      io.WriteCloser
	out     *bufio.Scanner
}

// StartPostgres starts a server that runs until the test ends. Its data is in memory if there is a memory
// file system: a crash of the server loses nothing there, and the test doesn't wait for a busy disk.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pgserve")
	build := exec.Command("go", "-C", filepath.Join(Root(t), "ext", "postgres"), "build", "-o", program,
		"./internal/pgserve")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(program)
	if exists("/dev/shm") {
		cmd.Env = append(cmd.Environ(), "TMPDIR=/dev/shm")
	}
	cmd.Stderr = t.Output()
	p := &Postgres{}
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(stdout)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = cmd.Wait()
	})
	require.True(t, p.out.Scan(), "Postgres does not start")
	p.Address = p.out.Text()
	return p
}

// prepare creates the databases of a Temporal server, following its manual, and returns their address.
func (p *Postgres) prepare(t testing.TB) (address string) {
	t.Helper()
	at, err := url.Parse(p.Address)
	require.NoError(t, err)
	port := at.Query().Get("port")
	for database, schema := range map[string]string{"temporal": "temporal", "temporal_visibility": "visibility"} {
		for _, words := range []string{"create", "setup-schema -v 0.0",
			"update-schema --schema-name postgresql/v12/" + schema} {
			args := append([]string{"--plugin", "postgres12", "--ep", "127.0.0.1", "-p", port, "-u", "postgres", "--db",
				database}, strings.Fields(words)...)
			out, err := exec.Command(tool(t, "temporal-sql-tool"), args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// Do sends a command to pgserve and returns the lines of the response.
func (p *Postgres) Do(t testing.TB, words ...string) (lines []string) {
	t.Helper()
	_, err := io.WriteString(p.in, strings.Join(words, " ")+"\n")
	require.NoError(t, err)
	for p.out.Scan() {
		if p.out.Text() == "" {
			return lines
		}
		lines = append(lines, p.out.Text())
	}
	require.Fail(t, "pgserve has ended", "%v", words)
	return nil
}
