package files

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// A damaged ref of ours keeps nothing, and git refuses to write other refs or to collect while
// it exists. The steps name what it kept, so it is removed and they are kept again.

// mendRef removes the file of a ref in a git directory of ours if no hash stands in it.
func mendRef(store, ref string) {
	file := filepath.Join(store, filepath.FromSlash(ref))
	text, err := careful.ReadFile(file, maxSetting, careful.NoFollow)
	if err != nil || isSum(strings.TrimSuffix(string(text), "\n")) {
		return
	}
	_ = os.Remove(file)
}

// isSum reports whether a text is the name of an object.
func isSum(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == "" && (len(text) == 40 || len(text) == 64)
}

// mendRefs removes refs whose commit is missing, or whose commit's files are.
func (g git) mendRefs(ctx context.Context, store string) error {
	err := filepath.WalkDir(filepath.Join(store, "refs"), func(path string, d fs.DirEntry, err error) error {
		ref, _ := filepath.Rel(store, path) // it is below
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) != ".lock" {
			mendRef(store, filepath.ToSlash(ref))
		}
		return err
	})
	if err != nil {
		return err
	}
	refs, err := g.ours(ctx)
	if err != nil || len(refs) == 0 {
		return err
	}
	const files = "^{tree}"
	out, err := g.run(ctx, []byte(strings.Join(refs, files+"\n")+files+"\n"), "cat-file", "--batch-check")
	if err != nil {
		return err
	}
	var gone bytes.Buffer
	for line := range strings.Lines(string(out)) {
		if ref, missing := strings.CutSuffix(line, files+" missing\n"); missing {
			gone.WriteString("delete " + ref + "\n")
		}
	}
	if gone.Len() > 0 {
		_, err = g.run(ctx, gone.Bytes(), "update-ref", "--stdin")
	}
	return err
}
