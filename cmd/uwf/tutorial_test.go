//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTutorial types what docs/tutorial.md says, in one shell: its blocks marked
// "sh", in their order.
func TestTutorial(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/tutorial.md")
	require.NoError(t, err)
	var script strings.Builder
	script.WriteString("set -eu\n")
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(doc), -1) {
		script.WriteString(block[1])
	}
	bin, dir := t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), ".", "../uwf-mock")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	shell := exec.Command("sh", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "UWF_HOME="+filepath.Join(dir, "home"), "OCAS_HOME=")
	out, err = shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, sign := range []string{`"status":"completed"`, "How much faster?", "Now I know.", "characters and wrote this", `"faults":[]`} {
		require.Contains(t, string(out), sign)
	}
}
