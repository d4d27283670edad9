package main

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A page that the site's list leaves out is found by nobody.
func TestSiteListsEveryPage(t *testing.T) {
	t.Parallel()
	tree, err := loadTree(".")
	require.NoError(t, err)
	var listed []string
	for _, found := range regexp.MustCompile(`(?m)^  pages: \[(.*)\]$`).FindAllStringSubmatch(read(t, tree.root, "packaging/site/data/pages.yaml"), -1) {
		listed = append(listed, strings.Split(found[1], ", ")...)
	}
	pages := []string{"security", "contributing"}
	files, err := filepath.Glob(filepath.Join(tree.root, "docs", "*.md"))
	require.NoError(t, err)
	for _, file := range files {
		pages = append(pages, strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".md"))
	}
	require.ElementsMatch(t, pages, listed)
}
