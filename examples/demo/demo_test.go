package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The demo starts with a bug, and its check fails without one.
func TestProjectBeginsRed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &demo{environ: os.Environ(), out: &out, project: filepath.Join(t.TempDir(), "project"), home: t.TempDir()}
	require.NoError(t, writeProject(d.project))
	require.NoError(t, d.expectTests(t.Context(), red))
	require.ErrorContains(t, d.expectTests(t.Context(), green), "promised: the tests are green")
	require.Contains(t, out.String(), "--- FAIL: TestMedian/not_sorted")
	require.Contains(t, out.String(), "--- FAIL: TestMedian/an_even_number")
}

func TestStepsAreChecked(t *testing.T) {
	t.Parallel()
	steps := func(way ...[2]string) []step {
		var list []step
		for _, w := range way {
			s := step{Role: w[0]}
			s.Output.Status = w[1]
			list = append(list, s)
		}
		return list
	}
	short := steps([2]string{"planner", "ready"}, [2]string{"developer", "done"}, [2]string{"reviewer", "approved"})
	require.Error(t, checkSteps(short, true), "the script rejects once")
	require.NoError(t, checkSteps(short, false), "a real model may be right at once")
	require.Error(t, checkSteps(short[:2], false))
	require.Error(t, checkSteps(nil, false))
	require.NoError(t, checkSteps(append(append(short[:2:2], steps([2]string{"reviewer", "rejected"}, [2]string{"developer", "done"})...), short[2]), true))
}

func TestRealModelComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	m, found, err := realModel([]string{"UWF_DEMO_BASE_URL=https://host/v1", "UWF_DEMO_MODEL=m", "OPENAI_API_KEY=k"})
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, model{baseURL: "https://host/v1", keyVariable: "OPENAI_API_KEY", worker: "m", reviewer: "m"}, m)

	_, found, err = realModel([]string{"OPENAI_API_KEY=k"})
	require.NoError(t, err)
	require.False(t, found)

	_, _, err = realModel([]string{"UWF_DEMO_MODEL=m"})
	require.ErrorContains(t, err, "UWF_DEMO_BASE_URL")
}

// The config contains the name of the key's variable, not the key itself.
func TestConfigNamesTheKey(t *testing.T) {
	t.Parallel()
	d := &demo{bin: `/opt/my "bin"`, home: filepath.Join(t.TempDir(), "home"), model: model{baseURL: "http://h/v1", keyVariable: "UWF_DEMO_API_KEY", worker: "w: 1"}}
	require.NoError(t, d.writeConfig())
	b, err := os.ReadFile(filepath.Join(d.home, "config.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(b), "apiKeyEnv: UWF_DEMO_API_KEY")
	require.Contains(t, string(b), `name: "w: 1"`)
	require.Contains(t, string(b), `\"bin\"`)
}

// A failed demo keeps its files and prints their path; the error of the failed check comes first.
func TestFailureNamesItsDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := &demo{bin: t.TempDir(), environ: os.Environ(), out: io.Discard, progress: io.Discard, now: time.Now}
	err := d.run(t.Context())
	require.ErrorContains(t, err, "make build")
	require.ErrorContains(t, err, "\nwhat the demo made is in "+d.root)
	require.DirExists(t, d.root)
}

// The project can commit on a machine where git has no identity.
func TestProjectHasAnIdentity(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	d := &demo{root: t.TempDir(), out: io.Discard, environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1",
		"UWF_DEMO_BASE_URL=http://h/v1", "UWF_DEMO_MODEL=m",
	}}
	stop, err := d.prepare(t.Context())
	require.NoError(t, err)
	require.NoError(t, stop())
	require.NoError(t, d.git(t.Context(), "commit", "-q", "--allow-empty", "-m", "as `uwf thread apply` does"))
}

// The suggested commands work without the demo's model, and without its files unless they are kept.
func TestNextLinesWork(t *testing.T) {
	t.Parallel()
	steps := []step{{Hash: "A"}, {Hash: "B"}, {Hash: "C"}}
	var gone, kept bytes.Buffer
	d := &demo{bin: "/opt/it's/bin", root: "/var/tmp/demo", home: "/var/tmp/demo/home", project: "/var/tmp/demo/project", out: &gone}
	require.NoError(t, d.printNext("T", steps, time.Second))
	require.NotContains(t, gone.String(), d.root)
	require.Contains(t, gone.String(), "make demo KEEP=1")
	require.Contains(t, gone.String(), `export PATH='/opt/it'\''s/bin':"$PATH"`)

	d.keep, d.out = true, &kept
	require.NoError(t, d.printNext("T", steps, time.Second))
	require.Contains(t, kept.String(), `'/opt/it'\''s/bin/uwf' --home /var/tmp/demo/home thread step-details C `)
	for _, asksTheModel := range []string{" fork ", " step ", " resume ", " run "} {
		require.NotContains(t, kept.String(), asksTheModel)
	}
}

// The output of concurrent commands is never mixed.
func TestAtOncePrintsInPieces(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	bin, project := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "uwf"), []byte("#!/bin/sh\n"+
		`for i in 1 2 3 4 5 6 7 8 9; do echo "$1 $i" >&2; ls / >/dev/null; done; echo '{}'`+"\n"), 0o755))
	var progress bytes.Buffer
	d := &demo{bin: bin, repo: project, environ: os.Environ(), out: io.Discard, progress: &progress}
	require.NoError(t, d.atOnce(t.Context(), [][]string{{"one"}, {"two", "words of it"}}))
	want := "one 1\none 2\none 3\none 4\none 5\none 6\none 7\none 8\none 9\n" + "\nMeanwhile: uwf two 'words of it'\n" +
		"two 1\ntwo 2\ntwo 3\ntwo 4\ntwo 5\ntwo 6\ntwo 7\ntwo 8\ntwo 9\n"
	require.Equal(t, want, progress.String())
}

const gallery = "../../docs/examples.md"

// Every example is listed, with the command to run it.
func TestGalleryIsWhole(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(gallery)
	require.NoError(t, err)
	files, err := filepath.Glob("../*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		require.Contains(t, string(page), "../examples/"+name+".yaml")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "#   uwf run examples/"+name+".yaml -p ")
	}
}
