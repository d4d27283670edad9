package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// servedRelease is a release for this platform on a local server.
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
	return d, serve(t, d)
}

// serve serves a release as GitHub does.
func serve(t *testing.T, d delivery) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	files := http.FileServer(http.Dir(d.out))
	mux.Handle("/latest/download/", http.StripPrefix("/latest/download/", files))
	mux.Handle("/download/"+d.version+"/", http.StripPrefix("/download/"+d.version+"/", files))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// fetchers are the programs that install.sh can download with, and patterns for their complete arguments.
var fetchers = map[string]*regexp.Regexp{
	"curl": regexp.MustCompile(`^--fail --silent --show-error --location --output (\S+) (\S+)$`),
	"wget": regexp.MustCompile(`^--quiet --output-document=(\S+) (\S+)$`),
}

// TestMain acts as a downloader under its name, because a fresh machine has none.
func TestMain(m *testing.M) {
	if want, ok := fetchers[filepath.Base(os.Args[0])]; ok {
		os.Exit(fetch(want, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func fetch(want *regexp.Regexp, args []string) int {
	found := want.FindStringSubmatch(strings.Join(args, " "))
	if found == nil {
		return 2
	}
	response, err := http.Get(found[2])
	if err != nil {
		return 6
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 22
	}
	file, err := os.Create(found[1])
	if err != nil {
		return 23
	}
	if _, err := file.ReadFrom(response.Body); err != nil || file.Close() != nil {
		return 23
	}
	return 0
}

// pathWith returns a directory for PATH with the programs that install.sh needs and only this downloader.
func pathWith(t *testing.T, fetcher string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"uname", "mktemp", "rm", "grep", "wc", "tar", "gzip", "mkdir", "cp", "chmod", "mv", "sha256sum", "shasum"} {
		if program, err := exec.LookPath(name); err == nil {
			require.NoError(t, os.Symlink(program, filepath.Join(dir, name)))
		}
	}
	if fetcher != "" {
		self, err := os.Executable()
		require.NoError(t, err)
		require.NoError(t, os.Symlink(self, filepath.Join(dir, fetcher)))
	}
	return dir
}

// install runs install.sh with an empty home.
func install(t *testing.T, path, url string, env ...string) (home, output string, err error) {
	t.Helper()
	home = t.TempDir()
	tree, err := loadTree(".")
	require.NoError(t, err)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	cmd := exec.Command(sh, filepath.Join(tree.root, "packaging", "install.sh"))
	cmd.Env = append([]string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + t.TempDir(), "UWF_DOWNLOAD=" + url}, env...)
	out, err := cmd.CombinedOutput()
	return home, string(out), err
}

func TestInstallScriptUsesAvailableDownloader(t *testing.T) {
	t.Parallel()
	_, url := servedRelease(t)
	for fetcher := range fetchers {
		_, out, err := install(t, pathWith(t, fetcher), url)
		require.NoError(t, err, "%s: %s", fetcher, out)
		require.Contains(t, out, "uwf v1.2.3")
	}
	_, out, err := install(t, pathWith(t, ""), url)
	require.Error(t, err)
	require.Contains(t, out, "neither curl nor wget is installed")
}

// TestRealFetchers compares the fakes with the real programs if installed.
func TestRealFetchers(t *testing.T) {
	t.Parallel()
	_, url := servedRelease(t)
	for name := range fetchers {
		program, err := exec.LookPath(name)
		if err != nil {
			continue // tested with the fake already
		}
		path := pathWith(t, "")
		require.NoError(t, os.Symlink(program, filepath.Join(path, name)))
		_, out, err := install(t, path, url)
		require.NoError(t, err, "%s: %s", name, out)
	}
}

func TestInstallScriptInRelativeDirectory(t *testing.T) {
	t.Parallel()
	_, url := servedRelease(t)
	tree, err := loadTree(".")
	require.NoError(t, err)
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	cmd := exec.Command(sh, filepath.Join(tree.root, "packaging", "install.sh"))
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + pathWith(t, "curl"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "UWF_DOWNLOAD=" + url, "UWF_BINDIR=some bin"}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.FileExists(t, filepath.Join(cmd.Dir, "some bin", "uwf"))
}

func TestInstallScript(t *testing.T) {
	t.Parallel()
	d, url := servedRelease(t)
	path := pathWith(t, "curl")
	for _, env := range [][]string{nil, {"UWF_VERSION=v1.2.3"}} {
		home, out, err := install(t, path, url, env...)
		require.NoError(t, err, out)
		require.Contains(t, out, "uwf v1.2.3")
		require.Contains(t, out, "add "+filepath.Join(home, ".local/bin")+" to PATH, then: uwf setup")
		entries, err := os.ReadDir(filepath.Join(home, ".local/bin"))
		require.NoError(t, err)
		require.Len(t, entries, 3, "the programs, and nothing half copied")
	}
	_, out, err := install(t, path, url, "UWF_VERSION=v9.9.9")
	require.Error(t, err)
	require.Contains(t, out, "cannot fetch "+url+"/download/v9.9.9/SHA256SUMS")

	// One more byte than listed.
	name := "uwf_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
	write(t, read(t, d.out, name)+"x", d.out, name)
	home, out, err := install(t, path, url)
	require.Error(t, err)
	require.Contains(t, out, "is not what SHA256SUMS says: nothing was installed")
	require.NoDirExists(t, filepath.Join(home, ".local"))

	// A list without this platform, and one with a path.
	for list, want := range map[string]string{
		strings.Repeat("0", 64) + "  uwf_v1.2.3_plan9_386.tar.gz\n":                                      "no archive for",
		strings.Repeat("0", 64) + "  ../uwf_v1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz\n": "no archive for",
	} {
		write(t, list, d.out, "SHA256SUMS")
		_, out, err = install(t, path, url)
		require.Error(t, err)
		require.Contains(t, out, want)
	}
}
