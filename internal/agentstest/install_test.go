//go:build agents

package agentstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// npm is the latest version of a program in the npm registry.
type npm struct {
	name   string // package name
	bin    string // its name below node_modules/.bin
	script string // below node_modules: the script that npm would run after the installation
}

// newest caches the latest versions by package name.
var newest sync.Map

// version returns the latest version, whatever its engine requirements: with an old Node, npm itself would
// install an older one.
func (p npm) version(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal("npm is not installed: the programs come from its registry")
	}
	ask, _ := newest.LoadOrStore(p.name, sync.OnceValues(func() (string, error) {
		out, err := exec.Command("npm", "view", p.name, "dist-tags.latest").Output()
		return strings.TrimSpace(string(out)), err
	}))
	version, err := ask.(func() (string, error))()
	require.NoError(t, err, "npm view %s", p.name)
	require.Regexp(t, `^\d+\.\d+\.\d+`, version, p.name)
	return version
}

// install returns the path of the program. It fails the test if the program is not available, because nothing
// would be tested. Each version is installed once.
func (p npm) install(t *testing.T) string {
	t.Helper()
	name := p.name + "@" + p.version(t)
	dir, err := filepath.Abs(filepath.Join("..", "..", ".tmp", "agents", dirName(name)))
	require.NoError(t, err)
	bin, done := filepath.Join(dir, "node_modules", ".bin", p.bin), filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return bin
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	out, err := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, name).CombinedOutput()
	require.NoError(t, err, "npm install %s:\n%s", name, out)
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
