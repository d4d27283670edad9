//go:build agents

package agentstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// npm is a program from the npm registry. It is installed once for each version.
type npm struct {
	packages []string // with versions: "@anthropic-ai/claude-code@2.1.332"
	bin      string   // its name below node_modules/.bin
	script   string   // below node_modules: what npm would have run after the installation
}

// install returns the path of the program, and fails the test if there is none to
// be had: a program that did not run has shown nothing.
func (p npm) install(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal("npm is not installed: the programs come from its registry")
	}
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tmp", "agents", dirName(strings.Join(p.packages, " "))))
	require.NoError(t, err)
	bin, done := filepath.Join(dir, "node_modules", ".bin", p.bin), filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return bin
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	args := append([]string{"install", "--no-audit", "--no-fund", "--silent", "--prefix", dir}, p.packages...)
	out, err := exec.CommandContext(t.Context(), "npm", args...).CombinedOutput()
	require.NoError(t, err, "npm install %s:\n%s", p.packages, out)
	if p.script != "" {
		out, err := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "node_modules", p.script)).CombinedOutput()
		require.NoError(t, err, "%s:\n%s", p.script, out)
	}
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	return bin
}

func dirName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("@/ :", r) {
			return '_'
		}
		return r
	}, s)
}

var serials = make(chan int)

func serial() string { return fmt.Sprint(<-serials) }

func TestMain(m *testing.M) {
	go func() {
		for i := 1; ; i++ {
			serials <- i
		}
	}()
	code := m.Run()
	report.print(os.Stdout)
	os.Exit(code)
}
