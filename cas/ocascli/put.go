package ocascli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/suggest"
)

func (c *CLI) putCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "put", Usage: "check a JSON value against its type and store it", ArgsUsage: "<type> <json|file|->",
	}, func(ctx context.Context, cc *ucli.Context) error { return c.add(ctx, cc, true) })
}

func (c *CLI) hashCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "hash", Usage: "print the hash that put would give; store nothing", ArgsUsage: "<type> <json|file|->",
	}, func(ctx context.Context, cc *ucli.Context) error { return c.add(ctx, cc, false) })
}

// add is put, or a dry put.
func (c *CLI) add(ctx context.Context, cc *ucli.Context, store bool) error {
	s, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	typ, err := typeOf(ctx, s, cc.Args().First())
	if err != nil {
		return err
	}
	value, err := c.value(cc.Args().Get(1))
	if err != nil {
		return err
	}
	b := cas.NewBatch(builtin{s}, c.Env.Now)
	h, err := b.AddValue(ctx, typ, value)
	if err == nil && store {
		err = b.Commit(ctx)
	}
	if err != nil {
		return err
	}
	if store {
		c.warnRedacted(ctx, s, h)
	}
	return c.printHash(h)
}

// warnRedacted says that what was put is redacted, and stays so.
func (c *CLI) warnRedacted(ctx context.Context, s cas.Store, h cas.Hash) {
	_, err := s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		fmt.Fprintf(c.Env.Stderr, "warning: %v; it stays so, also if it is put on purpose: to take the redaction back, remove its file first\n", redacted)
	}
}

// builtin is a store that has the schemas of our kinds, and the original's simplest
// types, before they are put.
type builtin struct{ cas.Store }

// Get implements [cas.Getter].
func (s builtin) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := s.Store.Get(ctx, h)
	if !errors.Is(err, cas.ErrNotFound) {
		return n, err
	}
	if known, ok := s.Kinds().Builtin(h); ok {
		return known, nil
	}
	for _, p := range primitives() {
		if known, _ := primitive(s, originals+p[0]); known.Hash == h {
			return known, nil
		}
	}
	return n, err
}

func (c *CLI) printHash(h cas.Hash) error {
	return c.print(map[string]any{"hash": h}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, h)
		return err
	})
}

func (c *CLI) putTextCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "put-text", Usage: "store a text as it is; - is stdin", ArgsUsage: "<text|->",
	}, func(ctx context.Context, cc *ucli.Context) error {
		text := cc.Args().First()
		if text == "-" {
			data, err := c.readAll(c.Env.Stdin)
			if err != nil {
				return err
			}
			text = string(data)
		}
		s, err := c.open(ctx, "")
		if err != nil {
			return err
		}
		typ, err := typeOf(ctx, s, textType(s))
		if err != nil {
			return err
		}
		b := cas.NewBatch(builtin{s}, c.Env.Now)
		h, err := b.AddValue(ctx, typ, text)
		if err != nil {
			return cmdline.Invalid(err.Error())
		}
		if err := b.Commit(ctx); err != nil {
			return err
		}
		c.warnRedacted(ctx, s, h)
		return c.printHash(h)
	})
}

// value reads an argument that is JSON, the name of a file with JSON, or - for
// stdin. What is JSON is never taken for a file.
func (c *CLI) value(arg string) (any, error) {
	if arg != "-" {
		v, err := exactjson.Parse([]byte(arg))
		if err == nil {
			return v, nil
		}
		if json.Valid([]byte(arg)) {
			return nil, cmdline.Invalid(err.Error())
		}
	}
	data, err := c.readInput(arg)
	if errors.Is(err, os.ErrNotExist) && strings.ContainsAny(arg, "{[\"") {
		_, err := exactjson.Parse([]byte(arg))
		return nil, cmdline.Invalid(fmt.Sprintf("the value is neither JSON (%v) nor a file", err))
	}
	if errors.Is(err, os.ErrNotExist) {
		hints := []string{c.Program + " put-text stores a text as it is; as JSON it has quotes: '\"" + arg + "\"'"}
		if near := suggest.File(c.Env.Dir, arg); near != "" {
			hints = append([]string{"did you mean " + near + "?"}, hints...)
		}
		return nil, cmdline.NotFound("no such file, and not JSON either: "+arg, hints...)
	}
	if errors.Is(err, syscall.EISDIR) {
		return nil, cmdline.Invalid(arg+" is a directory, not a file", "name a file with JSON in it, or - for stdin")
	}
	if err != nil {
		return nil, err
	}
	v, err := exactjson.Parse(data)
	if err != nil {
		return nil, cmdline.Invalid(fmt.Sprintf("%s is not JSON: %v", arg, err), c.Program+" put-text stores a text as it is")
	}
	return v, nil
}

func (c *CLI) readInput(arg string) ([]byte, error) {
	if arg == "-" {
		return c.readAll(c.Env.Stdin)
	}
	f, err := os.Open(c.Env.Path(arg))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return c.readAll(f)
}

// readAll reads at most what fits into a node.
func (c *CLI) readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, cas.MaxPayload+1))
	if err == nil && len(data) > cas.MaxPayload {
		err = cmdline.Invalid(fmt.Sprintf("the value has more than %d bytes", cas.MaxPayload))
	}
	return data, err
}
