package ocascli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (c *CLI) initCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "init", Usage: "create a store",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "hash",
			Usage: "`NAME` hash function: xxh3, or xxh64 as in the TypeScript uwf (default xxh3)"}},
	}, func(ctx context.Context, cc *ucli.Context) error {
		want := cas.Algorithm(cc.String("hash"))
		if want != "" && !want.Known() {
			return cmdline.UsageError(fmt.Sprintf("unknown hash function %q", want), append(cmdline.DidYouMean("--hash ",
				string(want), []string{"xxh3", "xxh64"}), "one of xxh3, xxh64")...)
		}
		s, err := c.open(ctx, want)
		if err != nil {
			return err
		}
		made := !s.Exists()
		switch {
		case made:
			err = s.Make(ctx, c.Env.Now().UnixMilli())
		case want != "" && want != s.Algorithm():
			err = cmdline.Invalid(fmt.Sprintf("the store at %s already has %s hashes", s.Dir(), s.Algorithm()))
		}
		if err != nil {
			return err
		}
		out := map[string]any{"store": s.Dir(), "hash": s.Algorithm(), "created": made}
		return c.print(out, func(w *bytes.Buffer) {
			fmt.Fprintf(w, "%s  %s\n", s.Dir(), s.Algorithm())
		})
	})
}

// shown is the printed form of a node.
type shown struct {
	Hash      cas.Hash `json:"hash"`
	Type      cas.Hash `json:"type"`
	Payload   any      `json:"payload"`
	Timestamp *int64   `json:"timestamp,omitempty"`
}

func (c *CLI) getCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "get", Usage: "print a node", ArgsUsage: "<hash>",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "timestamp", Usage: "include the time when it was stored, in ms"}},
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, h, err := c.named(ctx, cc)
		if err != nil {
			return err
		}
		n, err := s.Get(ctx, h)
		if err != nil {
			return err
		}
		value, err := n.Value()
		if err != nil {
			return &cas.CorruptError{Hash: h, Reason: err.Error()}
		}
		out := shown{Hash: n.Hash, Type: n.Type, Payload: value}
		if cc.Bool("timestamp") {
			out.Timestamp = &n.Timestamp
		}
		return c.print(out, nil)
	})
}

// named opens the store and resolves the node in the first argument.
func (c *CLI) named(ctx context.Context, cc *ucli.Context) (cas.Store, cas.Hash, error) {
	s, err := c.existing(ctx)
	if err != nil {
		return nil, "", err
	}
	h, err := c.meant(ctx, s, cc.Args().First())
	return s, h, err
}

func (c *CLI) hasCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "has", Usage: "report whether a node exists", ArgsUsage: "<hash>",
	}, func(ctx context.Context, cc *ucli.Context) error {
		_, h, err := c.named(ctx, cc)
		var coded *protocol.Error
		if err != nil && !(errors.As(err, &coded) && coded.Code == protocol.CodeNotFound) {
			return err
		}
		there := err == nil
		out := map[string]any{"hash": protocol.FoldCrockford(cc.Args().First()), "value": there}
		if there {
			out["hash"] = h
		}
		return c.print(out, func(w *bytes.Buffer) {
			fmt.Fprintln(w, there)
		})
	})
}

func (c *CLI) refsCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "refs", Usage: "list the nodes that a node refers to", ArgsUsage: "<hash>",
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, h, err := c.named(ctx, cc)
		if err != nil {
			return err
		}
		n, err := s.Get(ctx, h)
		if err != nil {
			return err
		}
		refs, err := graph.Refs(ctx, s, n)
		if err != nil {
			return err
		}
		return c.printHashes(c.Format(), refs)
	})
}

// printHashes prints a list, one per line in text form.
func (c *CLI) printHashes(format render.Format, hashes []cas.Hash) error {
	if hashes == nil {
		hashes = []cas.Hash{}
	}
	return c.printAs(format, hashes, func(w *bytes.Buffer) {
		for _, h := range hashes {
			fmt.Fprintln(w, h)
		}
	})
}

func (c *CLI) walkCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "walk", Usage: "list everything that a node refers to, directly or indirectly", ArgsUsage: "<hash>",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "format", Usage: "`FORMAT` output format: json, yaml, text or tree (default text on a terminal, else json)"},
			&ucli.BoolFlag{Name: "follow-type", Usage: "include the schemas"},
		},
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, h, err := c.named(ctx, cc)
		if err != nil {
			return err
		}
		format := c.Format()
		if name := cc.String("format"); name == "tree" {
			return printTree(ctx, c.Env.Stdout, s, h, cc.Bool("follow-type"))
		} else if name != "" {
			if format, err = render.ParseFormat(name); err != nil {
				return cmdline.UsageError(err.Error()+" or tree", cmdline.DidYouMean("--format ", name, append(render.Formats(),
					"tree"))...)
			}
		}
		var hashes []cas.Hash
		for n, err := range graph.Walk(ctx, s, []cas.Hash{h}, graph.WalkOptions{FollowTypes: cc.Bool("follow-type")}) {
			if errors.Is(err, cas.ErrNotFound) && n.Hash != h {
				fmt.Fprintf(c.Env.Stderr, "warning: %s is missing\n", n.Hash)
				continue
			}
			if _, redacted := cas.AsRedacted(err); redacted {
				err = nil // its refs are no longer known
			}
			if err != nil {
				return err
			}
			hashes = append(hashes, n.Hash)
		}
		return c.printHashes(format, hashes)
	})
}

// typeAt returns the type of a node, including a redacted one.
func typeAt(ctx context.Context, s cas.Store, h cas.Hash) (cas.Hash, error) {
	n, err := s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return redacted.Tombstone.Type, nil
	}
	return n.Type, err
}

func (c *CLI) verifyCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "verify", Usage: "verify a node's hash and schema", ArgsUsage: "<hash>",
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, h, err := c.named(ctx, cc)
		if err != nil {
			return err
		}
		out := map[string]any{"hash": h, "status": "ok"}
		err = cas.Verify(ctx, s, h)
		var (
			corrupt *cas.CorruptError
			schema  *cas.SchemaError
		)
		if redacted, ok := cas.AsRedacted(err); ok {
			out["status"], out["reason"] = "redacted", redacted.Tombstone.Reason
			return c.print(out, func(w *bytes.Buffer) {
				fmt.Fprintln(w, redacted.Error())
			})
		}
		switch {
		case err == nil:
		case errors.As(err, &schema):
			out["status"], out["reason"], c.Status = "invalid", err.Error(), protocol.CodeCorrupt
		case errors.As(err, &corrupt), errors.Is(err, cas.ErrNotFound):
			out["status"], out["reason"], c.Status = "corrupted", err.Error(), protocol.CodeCorrupt
		default:
			return err
		}
		return c.print(out, func(w *bytes.Buffer) {
			line := fmt.Sprint(out["status"])
			if err != nil {
				line += ": " + plaintext.Line(err.Error())
			}
			fmt.Fprintln(w, line)
		})
	})
}

func (c *CLI) reindexCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "reindex", Hidden: true, Usage: "count the nodes (there is no index)",
	}, func(ctx context.Context, _ *ucli.Context) error {
		s, err := c.existing(ctx)
		if err != nil {
			return err
		}
		nodes := 0
		types := map[cas.Hash]bool{}
		for h, err := range s.All(ctx, "") {
			if err != nil {
				return err
			}
			typ, err := typeAt(ctx, s, h)
			if err != nil {
				return err
			}
			nodes++
			types[typ] = true
		}
		out := map[string]any{"types": len(types), "nodes": nodes, "removed": 0, "rebuilt": 0}
		return c.print(out, func(w *bytes.Buffer) {
			fmt.Fprintf(w, "%d nodes of %d types; nothing to rebuild: the store has no index\n", nodes,
				len(types))
		})
	})
}

// tree prints the references of a node, indented. Each node is expanded once; an ellipsis marks later
// occurrences.
type tree struct {
	out       io.Writer
	store     cas.Store
	inspector *graph.Inspector
	types     bool
	seen      map[cas.Hash]bool
	titles    map[cas.Hash]string
}

// place is a node to print. A stack of them replaces recursion, because chains are as long as threads.
type place struct {
	hash  cas.Hash
	depth int
}

// maxIndent keeps the lines of a long chain readable.
const maxIndent = 40

func printTree(ctx context.Context, out io.Writer, s cas.Store, root cas.Hash, types bool) error {
	t := &tree{out: out, store: s, inspector: graph.NewInspector(s), types: types, seen: map[cas.Hash]bool{},
		titles: map[cas.Hash]string{}}
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

// line prints one node and returns its children.
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
		_, err := fmt.Fprintf(t.out, "%s%s  %s  %s\n", indent, at.hash, t.title(ctx, redacted.Tombstone.Type),
			redacted.Mark())
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

// title returns the title of a schema, or else its hash.
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
		return string(typ) // reported by fsck
	}
	if object, ok := schema.(map[string]any); ok {
		if title, ok := object["title"].(string); ok && title != "" {
			return title
		}
	}
	return string(typ)
}
