package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The notices of this test's own program list all modules linked into it, with the text of their licences.
func TestNotices(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(exe)
	require.NoError(t, err)
	own, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	require.NotEmpty(t, own.Deps)
	o := &outside{dir: t.TempDir(), env: os.Environ()}
	tree, err := loadTree(".")
	require.NoError(t, err)
	used, err := tree.linked([][]byte{program, program})
	require.NoError(t, err)
	text, err := tree.notices(t.Context(), o, used, process{stderr: os.Stderr})
	require.NoError(t, err)
	bill, err := billOfMaterials(delivery{version: "v1.2.3"}, used)
	require.NoError(t, err)
	require.Contains(t, string(text), "The Go programming language")
	require.Contains(t, string(text), "Redistribution and use in source and binary forms")
	require.Equal(t, copied(), tree.copies())
	for copied, dir := range tree.copies() {
		module := strings.Join(strings.Split(dir, "/")[:3], "/")
		require.Contains(t, string(text), "\n"+copied.Path+" "+copied.Version+" (LICEN")
		require.Contains(t, string(bill), `"purl": "pkg:golang/`+copied.Path+"@"+copied.Version+`"`)
		require.Contains(t, read(t, tree.root, module+"/go.mod"), copied.Path+" "+copied.Version, "the version that the copy is held to")
	}
	for _, dep := range own.Deps {
		require.Equal(t, 1, bytes.Count(text, []byte("\n"+dep.Path+" "+dep.Version+" (LICENSE")), dep.Path)
		require.Contains(t, string(bill), `"purl": "pkg:golang/`+dep.Path+"@"+dep.Version+`"`)
	}
	var parsed map[string]any
	require.NoError(t, json.Unmarshal(bill, &parsed))
	require.Equal(t, "CycloneDX", parsed["bomFormat"])
	require.ErrorContains(t, notice(&bytes.Buffer{}, "x v1", t.TempDir()), "x v1 has no licence")
	require.True(t, isLicence("LICENSE.txt") && isLicence("COPYING") && isLicence("License-MIT"))
	require.False(t, isLicence("README.md") || isLicence("licenses.go"))
}
