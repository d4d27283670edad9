package ocascli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/plaintext"
)

// tree prints what a node leads to, indented. A node is opened once; where it
// comes again, an ellipsis says that it has been shown.
type tree struct {
	out       io.Writer
	store     cas.Store
	inspector *cas.Inspector
	types     bool
	seen      map[cas.Hash]bool
	titles    map[cas.Hash]string
}

// place is a node still to be printed. A stack of them, and not a recursion,
// because chains are as long as threads.
type place struct {
	hash  cas.Hash
	depth int
}

// maxIndent keeps the lines of a long chain readable.
const maxIndent = 40

func printTree(ctx context.Context, out io.Writer, s cas.Store, root cas.Hash, types bool) error {
	t := &tree{out: out, store: s, inspector: cas.NewInspector(s), types: types, seen: map[cas.Hash]bool{}, titles: map[cas.Hash]string{}}
	for stack := []place{{root, 0}}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		refs, err := t.line(ctx, at)
		if err != nil {
			return err
		}
		for i := range refs {
			stack = append(stack, place{refs[len(refs)-1-i], at.depth + 1})
		}
	}
	return nil
}

// line prints one node and returns what comes below it.
func (t *tree) line(ctx context.Context, at place) ([]cas.Hash, error) {
	indent := strings.Repeat("  ", min(at.depth, maxIndent))
	if t.seen[at.hash] {
		_, err := fmt.Fprintf(t.out, "%s%s …\n", indent, at.hash)
		return nil, err
	}
	t.seen[at.hash] = true
	n, err := t.store.Get(ctx, at.hash)
	if errors.Is(err, cas.ErrNotFound) {
		_, err := fmt.Fprintf(t.out, "%s%s (missing)\n", indent, at.hash)
		return nil, err
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		_, err := fmt.Fprintf(t.out, "%s%s  %s  %s\n", indent, at.hash, t.title(ctx, redacted.Tombstone.Type), redacted.Mark())
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	refs, err := t.inspector.Refs(ctx, n)
	if err != nil {
		return nil, err
	}
	if t.types && n.Type != n.Hash {
		refs = append(refs, n.Type)
	}
	_, err = fmt.Fprintf(t.out, "%s%s  %s\n", indent, at.hash, t.title(ctx, n.Type))
	return refs, err
}

// title is what a schema calls itself, else its hash.
func (t *tree) title(ctx context.Context, typ cas.Hash) string {
	title, ok := t.titles[typ]
	if !ok {
		title = plaintext.Line(titleOf(ctx, t.store, typ))
		t.titles[typ] = title
	}
	return title
}

func titleOf(ctx context.Context, s cas.Store, typ cas.Hash) string {
	if typ == s.Kinds().MetaHash() {
		return meta
	}
	schema, err := cas.Schema(ctx, s, typ)
	if err != nil {
		return string(typ) // which fsck looks at
	}
	if object, ok := schema.(map[string]any); ok {
		if title, ok := object["title"].(string); ok && title != "" {
			return title
		}
	}
	return string(typ)
}
