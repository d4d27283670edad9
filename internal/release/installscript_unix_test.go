package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// servedRelease is a release on a server of this machine, for this system.
func servedRelease(t *testing.T) (d delivery, url string) {
	t.Helper()
	d = delivery{out: t.TempDir(), version: "v1.2.3", when: time.Unix(1, 0)}
	name, data, err := target{runtime.GOOS, runtime.GOARCH}.pack(d, []member{
		{"uwf", []byte("#!/bin/sh\necho uwf v1.2.3\n"), 0o755}, {"uwf-builtin", []byte("#!/bin/sh\n"), 0o755},
		{"ocas", []byte("#!/bin/sh\n"), 0o755}, {"README.md", []byte("x"), 0o644},
	})
	require.NoError(t, err)
	sums := &checksums{}
	require.NoError(t, d.write(sums, name, data, process{stdout: t.Output()}))
	write(t, sums.text(), d.out, "SHA256SUMS")
	mux := http.NewServeMux()
	files := http.FileServer(http.Dir(d.out))
	mux.Handle("/latest/download/", http.StripPrefix("/latest/download/", files))
	mux.Handle("/download/v1.2.3/", http.StripPrefix("/download/v1.2.3/", files))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return d, server.URL
}

// install runs install.sh with an empty home.
func install(t *testing.T, url string, env ...string) (home, output string, err error) {
	t.Helper()
	home = t.TempDir()
	tree, err := loadTree(".")
	require.NoError(t, err)
	cmd := exec.Command("sh", filepath.Join(tree.root, "packaging", "install.sh"))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "UWF_DOWNLOAD=" + url}, env...)
	out, err := cmd.CombinedOutput()
	return home, string(out), err
}

func TestInstallScript(t *testing.T) {
	t.Parallel()
	d, url := servedRelease(t)
	for _, env := range [][]string{nil, {"UWF_VERSION=v1.2.3"}} {
		home, out, err := install(t, url, env...)
		require.NoError(t, err, out)
		require.Contains(t, out, "uwf v1.2.3")
		require.Contains(t, out, "add "+filepath.Join(home, ".local/bin")+" to PATH, then: uwf setup")
		entries, err := os.ReadDir(filepath.Join(home, ".local/bin"))
		require.NoError(t, err)
		require.Len(t, entries, 3, "the programs, and nothing half copied")
	}
	_, out, err := install(t, url, "UWF_VERSION=v9.9.9")
	require.Error(t, err)
	require.Contains(t, out, "cannot fetch "+url+"/download/v9.9.9/SHA256SUMS")

	// One byte more than the list says.
	name := "uwf_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	write(t, read(t, d.out, name)+"x", d.out, name)
	home, out, err := install(t, url)
	require.Error(t, err)
	require.Contains(t, out, "is not what SHA256SUMS says: nothing was installed")
	require.NoDirExists(t, filepath.Join(home, ".local"))

	// A list without this system, and one that names another directory.
	for list, want := range map[string]string{
		strings.Repeat("0", 64) + "  uwf_v1.2.3_plan9_386.tar.gz\n":                                      "no archive for",
		strings.Repeat("0", 64) + "  ../uwf_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz\n": "no archive for",
	} {
		write(t, list, d.out, "SHA256SUMS")
		_, out, err = install(t, url)
		require.Error(t, err)
		require.Contains(t, out, want)
	}
}
