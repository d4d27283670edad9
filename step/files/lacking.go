package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// IsStore reports whether a git directory of ours was made.
func IsStore(store string) bool {
	_, err := os.Lstat(filepath.Join(store, "objects"))
	return err == nil
}

// Lacking returns those of the given objects that a git directory of ours does not have, in
// their order.
func Lacking(ctx context.Context, e env.Env, store string, ids []protocol.Tree) ([]protocol.Tree, error) {
	if len(ids) == 0 || !IsStore(store) {
		return ids, nil
	}
	g, err := inStore(e, store)
	if err != nil {
		return nil, err
	}
	var ask strings.Builder
	for _, id := range ids {
		ask.WriteString(sumOf(id) + "\n")
	}
	out, err := g.run(ctx, []byte(ask.String()), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	var lacking []protocol.Tree
	next := 0
	for line := range strings.Lines(string(out)) { // "<type>", or "<sum> missing"
		if next == len(ids) {
			break
		}
		if strings.HasSuffix(strings.TrimSpace(line), " missing") {
			lacking = append(lacking, ids[next])
		}
		next++
	}
	return append(lacking, ids[next:]...), nil
}
