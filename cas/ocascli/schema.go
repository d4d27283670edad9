package ocascli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

func (c *CLI) listCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list nodes, sorted by hash",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "type", Usage: "only nodes of this `TYPE`: a hash, or a kind such as step"}},
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, err := c.existing(ctx)
		if err != nil {
			return err
		}
		var only cas.Hash
		if arg := cc.String("type"); arg != "" {
			if only, err = typeOf(ctx, s, arg); err != nil {
				return err
			}
		}
		var hashes []cas.Hash
		for h, err := range s.All(ctx, "") {
			if err != nil {
				return err
			}
			if only != "" {
				typ, err := typeAt(ctx, s, h)
				if err != nil {
					return err
				}
				if typ != only {
					continue
				}
			}
			hashes = append(hashes, h)
		}
		return c.printHashes(hashes)
	})
}

func (c *CLI) schemaCommand() *ucli.Command {
	return cmdline.Group(c.Env.Stderr, ucli.Command{
		Name: "schema", Usage: "the types of nodes",
		Subcommands: []*ucli.Command{
			cmdline.Leaf(ucli.Command{Name: "list", Aliases: []string{"ls"}, Usage: "list the schemas in the store"}, c.schemaList),
			cmdline.Leaf(ucli.Command{Name: "get", Usage: "print a schema", ArgsUsage: "<type>"}, c.schemaGet),
			cmdline.Leaf(ucli.Command{Name: "put", Usage: "check a JSON Schema and store it", ArgsUsage: "<json|file|->"}, c.schemaPut),
			c.validateCommand(),
		},
	})
}

// listed is a schema as it is listed.
type listed struct {
	Hash  cas.Hash `json:"hash"`
	Title string   `json:"title,omitempty"`
}

func (c *CLI) schemaList(ctx context.Context, _ *ucli.Context) error {
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	schemas := []listed{}
	for h, err := range s.All(ctx, "") {
		if err != nil {
			return err
		}
		typ, err := typeAt(ctx, s, h)
		if err != nil {
			return err
		}
		if typ != s.Kinds().MetaHash() {
			continue
		}
		l := listed{Hash: h}
		if title := titleOf(ctx, s, h); title != string(h) {
			l.Title = title
		}
		schemas = append(schemas, l)
	}
	return c.print(schemas, func(w io.Writer) error {
		for _, l := range schemas {
			if _, err := fmt.Fprintf(w, "%s  %s\n", l.Hash, plaintext.Line(l.Title)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *CLI) schemaGet(ctx context.Context, cc *ucli.Context) error {
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	h, err := typeOf(ctx, s, cc.Args().First())
	if err != nil {
		return err
	}
	n, err := s.Get(ctx, h)
	if err != nil {
		return err
	}
	if n.Type != s.Kinds().MetaHash() {
		return cmdline.Invalid(fmt.Sprintf("node %s is not a schema", h))
	}
	schema, err := n.Value()
	if err != nil {
		return err
	}
	return c.print(schema, nil)
}

func (c *CLI) schemaPut(ctx context.Context, cc *ucli.Context) error {
	s, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	schema, err := c.value(cc.Args().First())
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, c.Env.Now)
	h, err := b.AddSchema(ctx, schema)
	if err == nil {
		err = b.Commit(ctx)
	}
	if err != nil {
		return err
	}
	return c.printHash(h)
}

// columns prints aligned rows.
func columns(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			cell = plaintext.Line(cell)
			if i > 0 {
				cell = "\t" + cell
			}
			if _, err := io.WriteString(tw, cell); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(tw, "\n"); err != nil {
			return err
		}
	}
	return tw.Flush()
}
