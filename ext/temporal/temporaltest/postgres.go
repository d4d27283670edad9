package temporaltest

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Postgres is a real one, run by ext/postgres/internal/pgserve. Its methods are for one
// goroutine at a time.
type Postgres struct {
	Address string
	in      io.WriteCloser
	out     *bufio.Scanner
}

// StartPostgres starts one that lives as long as the test.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pgserve")
	build := exec.Command("go", "-C", filepath.Join(Root(t), "ext", "postgres"), "build", "-o", program, "./internal/pgserve")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(program)
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

// Do has pgserve do something, and returns the lines that it answers with.
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
