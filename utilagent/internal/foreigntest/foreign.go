//go:build endpoint

package foreigntest

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server, from the npm registry.
const (
	pkg     = "@copilotkit/aimock@1.43.0"
	program = "node_modules/@copilotkit/aimock/dist/cli.js"
)

// Start installs the server below .tmp and starts it with fixtures. It returns the base URL. It skips the
// test if npm cannot install the server.
func Start(t *testing.T, fixtures string, more ...string) string {
	t.Helper()
	dir, err := filepath.Abs("../../.tmp/endpoint")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, pkg)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: npm could not install %s, so nothing was tried against it: %v\n%s", pkg, err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	args := append([]string{filepath.Join(dir, program), "--port", port, "--strict", "--fixtures", fixtures}, more...)
	cmd := exec.CommandContext(t.Context(), "node", args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	go func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
		}
	}()
	url := "http://127.0.0.1:" + port
	require.Eventually(t, func() bool {
		resp, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	}, 20*time.Second, 50*time.Millisecond)
	t.Logf("RAN against %s at %s", pkg, url)
	return url + "/v1"
}
