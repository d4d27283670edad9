package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The formula contains each archive with its checksum, and is written only if all archives exist.
func TestFormula(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	d := delivery{out: t.TempDir(), version: "v1.2.3"}
	sums := &checksums{}
	for i, to := range targets()[:4] {
		require.NoFileExists(t, filepath.Join(d.out, "uwf.rb"))
		name, _, err := to.pack(d, nil)
		require.NoError(t, err)
		sums.add(name, []byte{byte(i)})
		require.NoError(t, tree.installers(d, &checksums{names: sums.names, sums: sums.sums}, process{stdout: t.Output()}))
	}
	formula := read(t, d.out, "uwf.rb")
	require.NotRegexp(t, regexp.MustCompile(`[^#]\{[a-z_0-9]+\}`), formula, "every blank is filled in")
	for i, to := range targets()[:4] {
		url := "/v1.2.3/uwf_v1.2.3_" + to.os + "_" + to.arch + `.tar.gz"`
		_, rest, found := strings.Cut(formula, url)
		require.True(t, found, url)
		require.Contains(t, strings.SplitN(rest, "\n", 3)[1], fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i)})))
	}
	require.Equal(t, read(t, tree.root, "packaging/install.sh"), read(t, d.out, "install.sh"))
}

// Files in packaging that the Debian package and the GitHub action refer to exist.
func TestPackagingIsThere(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	named := regexp.MustCompile(`packaging/[\w./-]+`)
	for name, least := range map[string]int{"packaging/nfpm.yaml": 3, "action.yml": 3} {
		found := named.FindAllString(read(t, tree.root, name), -1)
		require.GreaterOrEqual(t, len(found), least, name)
		for _, path := range found {
			_, err := os.Stat(filepath.Join(tree.root, path))
			require.NoError(t, err)
		}
	}
}
