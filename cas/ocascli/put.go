package ocascli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// put also implements hash, which stores nothing.
func (c *CLI) put(ctx context.Context, cc *ucli.Context) error {
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
	return c.addValue(ctx, s, typ, value, cc.Command.Name == "put")
}

// addValue prints the hash of a value, and stores it if store is set.
func (c *CLI) addValue(ctx context.Context, s cas.Store, typ cas.Hash, value any, store bool) error {
	b := cas.NewBatch(builtin{s}, c.Env.Now)
	h, err := b.AddValue(ctx, typ, value)
	if err == nil && store {
		err = b.Commit(ctx)
	}
	if err != nil {
		return err
	}
	_, err = s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok && store {
		fmt.Fprintf(c.Env.Stderr, "warning: %v; putting it again does not restore it\n", redacted)
	}
	return c.printLine(map[string]any{"hash": h}, h)
}

// builtin is a store that contains the schemas of our kinds and the original's simplest types even before
// they are put.
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

func (c *CLI) putText(ctx context.Context, cc *ucli.Context) error {
	text := cc.Args().First()
	if text == "-" {
		data, err := c.readAll(c.Env.Stdin)
		if err != nil {
			return err
		}
		text = string(data)
	}
	if _, err := cas.Encode(text); err != nil {
		return cmdline.Invalid(err.Error())
	}
	s, err := c.open(ctx, "")
	if err != nil {
		return err
	}
	typ, err := typeOf(ctx, s, textType(s))
	if err != nil {
		return err
	}
	return c.addValue(ctx, s, typ, text, true)
}

// value reads an argument that is JSON, a file name, or - for stdin. Valid JSON never counts as a file name.
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
		return nil, cmdline.Invalid(fmt.Sprintf("the value is neither JSON (%v) nor a file", err),
			"to store a plain text: "+c.Program+" put-text "+plaintext.Word(arg))
	}
	if errors.Is(err, os.ErrNotExist) {
		hints := []string{"to store a plain text: " + c.Program + " put-text " + plaintext.Word(arg)}
		if near := suggest.File(c.Env.Dir, arg); near != "" {
			hints = append([]string{"did you mean " + near + "?"}, hints...)
		}
		return nil, cmdline.NotFound("neither a file nor JSON: "+arg, hints...)
	}
	if errors.Is(err, syscall.EISDIR) {
		return nil, cmdline.Invalid(arg+" is a directory, not a file", "name a JSON file, or - for stdin")
	}
	if err != nil {
		return nil, err
	}
	v, err := exactjson.Parse(data)
	if err != nil {
		return nil, cmdline.Invalid(fmt.Sprintf("%s is not JSON: %v", arg, err), "to store a plain text: "+c.Program+" put-text FILE")
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

// readAll reads at most as much as fits into a node.
func (c *CLI) readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, cas.MaxPayload+1))
	if err == nil && len(data) > cas.MaxPayload {
		err = cmdline.Invalid(fmt.Sprintf("the value has more than %d bytes", cas.MaxPayload))
	}
	return data, err
}

func (c *CLI) list(ctx context.Context, cc *ucli.Context) error {
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
	return c.printHashes(c.Format(), hashes)
}

// listed is a schema in a list.
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
	return c.print(schemas, func(w *bytes.Buffer) {
		for _, l := range schemas {
			fmt.Fprintf(w, "%s  %s\n", l.Hash, plaintext.Line(l.Title))
		}
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
	return c.addValue(ctx, s, s.Kinds().MetaHash(), schema, true)
}

// verdict is the result of schema validate.
type verdict struct {
	Valid    bool                 `json:"valid"`
	Hash     cas.Hash             `json:"hash,omitempty"` // of the value, if its type is in the store
	Problems []jsonschema.Problem `json:"problems,omitempty"`
}

func (c *CLI) schemaValidate(ctx context.Context, cc *ucli.Context) error {
	typ, value := cc.Args().First(), cc.Args().Get(1)
	check := c.fitsType
	if typ == "-" || strings.HasPrefix(strings.TrimSpace(typ), "{") {
		check = c.fitsSchema
	}
	hash, err := check(ctx, typ, value)
	if wrong, ok := errors.AsType[*cas.SchemaError](err); ok {
		none := func(*bytes.Buffer) {} // the error is text
		return errors.Join(c.print(verdict{Problems: wrong.Problems}, none), err)
	}
	if err != nil {
		return err
	}
	return c.printLine(verdict{Valid: true, Hash: hash}, "valid")
}

// fitsType validates a value against a type in the store, and returns the value's hash. It returns a
// [*cas.SchemaError] if the value is invalid.
func (c *CLI) fitsType(ctx context.Context, typ, arg string) (cas.Hash, error) {
	s, err := c.open(ctx, "")
	if err != nil {
		return "", err
	}
	h, err := typeOf(ctx, s, typ)
	if err != nil {
		return "", err
	}
	value, err := c.value(arg)
	if err != nil {
		return "", err
	}
	return cas.NewBatch(builtin{s}, c.Env.Now).AddValue(ctx, h, value)
}

// fitsSchema validates a value against a schema that needn't be in a store; there is no hash. Errors are as
// for fitsType, with an empty type.
func (c *CLI) fitsSchema(ctx context.Context, schemaArg, valueArg string) (cas.Hash, error) {
	schema, value, err := c.pair(schemaArg, valueArg)
	if err != nil {
		return "", err
	}
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return "", cmdline.Invalid(err.Error())
	}
	problems, err := compiled.Validate(ctx, value)
	if err == nil && len(problems) > 0 {
		err = &cas.SchemaError{Problems: problems}
	}
	return "", err
}

// pair reads a schema and a value, both normalized as in a store. If both are on stdin, the schema comes
// first.
func (c *CLI) pair(schemaArg, valueArg string) (schema, value any, err error) {
	if schemaArg != "-" || valueArg != "-" {
		if schema, err = c.value(schemaArg); err == nil {
			value, err = c.value(valueArg)
		}
	} else {
		schema, value, err = c.both()
	}
	if err != nil {
		return nil, nil, err
	}
	if schema, err = stored(schema); err == nil {
		value, err = stored(value)
	}
	return schema, value, err
}

// both reads two JSON values from stdin.
func (c *CLI) both() (first, second any, err error) {
	data, err := c.readAll(c.Env.Stdin)
	if err != nil {
		return nil, nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var schema json.RawMessage
	if err = dec.Decode(&schema); err == nil {
		first, err = exactjson.Parse(schema)
	}
	if err == nil {
		second, err = exactjson.Parse(data[dec.InputOffset():])
	}
	if err != nil {
		return nil, nil, cmdline.Invalid(fmt.Sprintf("stdin is not a schema and a value: %v", err))
	}
	return first, second, nil
}

// stored returns a value as a store would return it.
func stored(v any) (any, error) {
	payload, err := cas.Encode(v)
	if err != nil {
		return nil, cmdline.Invalid(err.Error())
	}
	return cas.Decode(payload)
}
