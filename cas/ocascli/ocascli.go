// Package ocascli implements the store's command line: the program ocas, and uwf's group "cas". A [CLI] holds
// the shared dependencies of the commands; each file contains related commands. Results go to stdout, as JSON
// for programs and as text on a terminal.
package ocascli

import (
	"bytes"
	"context"
	_ "embed" // the descriptions of the commands
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/graph"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

// CLI holds the dependencies shared by all store commands. Dirs and Format are functions because they depend
// on flags.
type CLI struct {
	Env     env.Env
	Program string // program name in hints: "ocas" or "uwf cas"
	Dirs    func() (home.Dirs, error)
	Format  func() render.Format
	// Place resolves a place in a thread, such as @-1, to a node; nil: only hashes are supported.
	Place func(ctx context.Context, arg string) (cas.Hash, error)
	// Files accesses the files of steps; nil if there are none.
	Files Files
	// Status is set by a command that succeeded but found something that scripts must notice.
	Status protocol.Code
}

// Files stores the files of steps, next to the store.
type Files interface {
	// CollectFiles removes the files of threads that no longer exist in any of the homes, while alone
	// prevents new threads; a dry run only counts. line describes the result for people.
	CollectFiles(ctx context.Context, homes []string, dry bool, withExclusive func(func() error) error) (done any, line string,
		err error)
	// CheckFiles reports steps with damaged or missing files, and returns the number of file trees checked.
	CheckFiles(ctx context.Context, wrong func(fsck.Fault)) (int, error)
}

//go:embed commands.txt
var descriptions string

// Commands returns all commands of the store.
func (c *CLI) Commands() []*ucli.Command {
	commands := slices.Concat(
		cmdline.Under("Inspect",
			leaf("get", "print a node", "<hash>", c.get,
				&ucli.BoolFlag{Name: "timestamp", Usage: "include the time when it was stored, in ms"}),
			leaf("has", "report whether a node exists", "<hash>", c.has),
			leaf("refs", "list the nodes that a node refers to", "<hash>", c.refs),
			leaf("walk", "list everything that a node refers to, directly or indirectly", "<hash>", c.walk,
				&ucli.StringFlag{Name: "format",
					Usage: "`FORMAT` output format: json, yaml, text or tree (default text on a terminal, else json)"},
				&ucli.BoolFlag{Name: "follow-type", Usage: "include the schemas"}),
			leaf("list", "list nodes, sorted by hash", "", c.list, &ucli.StringFlag{Name: "type",
				Usage: "`TYPE` only nodes of one type: a hash, or a kind such as step"}),
			leaf("verify", "verify a node's hash and schema", "<hash>", c.verify)),
		cmdline.Under("Manage",
			leaf("init", "create a store", "", c.init, &ucli.StringFlag{Name: "hash",
				Usage: "`NAME` hash function: xxh3, or xxh64 as in the TypeScript uwf (default xxh3)"}),
			leaf("put", "store a JSON value", "<type> <json|file|->", c.put),
			leaf("put-text", "store a text", "<text|->", c.putText),
			leaf("hash", "print the hash of a value without storing it", "<type> <json|file|->", c.put),
			cmdline.Group(c.Env.Stderr, ucli.Command{Name: "schema", Usage: "manage node types", Subcommands: []*ucli.Command{
				leaf("list", "list the schemas in the store", "", c.schemaList),
				leaf("get", "print a schema", "<type>", c.schemaGet),
				leaf("put", "store a JSON Schema as a type", "<json|file|->", c.schemaPut),
				leaf("validate", "validate a value against a type or a JSON Schema", "<type|schema> <json|file|->",
					c.schemaValidate),
			}})),
		cmdline.Under("Maintain",
			leaf("fsck", "check the whole store", "", c.fsck,
				&ucli.BoolFlag{Name: "repair", Usage: "rebuild damaged data, or move it to quarantine"},
				&ucli.StringFlag{Name: "evict", Usage: "`HASH` only move this node to quarantine"}),
			leaf("gc", "delete nodes that nothing uses", "", c.gc,
				&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only print what would be deleted"},
				&ucli.StringFlag{Name: "grace", Usage: "`DURATION` keep nodes that are newer than this (default 1h)"},
				&ucli.StringSliceFlag{Name: "roots", Usage: "`DIR` home whose threads to keep (default all that use the store)"},
				&ucli.StringSliceFlag{Name: "forget-home",
					Usage: "`DIR` home that was deleted, so that nothing is kept for its threads"},
				&ucli.BoolFlag{Name: "auto",
					Usage: "only compress, and only if it pays and no other gc runs; uwf does this in the background"},
				&ucli.BoolFlag{Name: "damaged", Usage: "continue even if nodes or threads in use are missing or damaged"}),
			leaf("reindex", "count the nodes (there is no index)", "", c.reindex)),
		cmdline.Under("Share",
			leaf("export", "export nodes to a bundle", "<hash…>", c.export, OutputFlag()),
			leaf("import", "import the nodes of a bundle", "<file>", c.importNodes)),
	)
	cmdline.Describe(commands, strings.ReplaceAll(descriptions, "   ocas ", "   "+c.Program+" "))
	return commands
}

// leaf returns a command. As in the original, list has a short name; reindex is only for scripts made for the original.
func leaf(name, usage, args string, run func(context.Context, *ucli.Context) error, flags ...ucli.Flag) *ucli.Command {
	command := ucli.Command{Name: name, Usage: usage, ArgsUsage: args, Flags: flags, Hidden: name == "reindex"}
	if name == "list" {
		command.Aliases = []string{"ls"}
	}
	return cmdline.Leaf(command, run)
}

// print writes a command's result.
func (c *CLI) print(value any, text func(w *bytes.Buffer)) error {
	return c.printAs(c.Format(), value, text)
}

// printLine is print for a result whose text is one line.
func (c *CLI) printLine(value, line any) error {
	return c.print(value, func(w *bytes.Buffer) { fmt.Fprintln(w, line) })
}

func (c *CLI) printAs(format render.Format, value any, text func(w *bytes.Buffer)) error {
	if text == nil {
		return render.Print(c.Env.Stdout, format, value, nil)
	}
	return render.Print(c.Env.Stdout, format, value, func(out io.Writer) error {
		var w bytes.Buffer
		text(&w)
		_, err := w.WriteTo(out)
		return err
	})
}

// open opens the store for writing. It needn't exist, but dir must not contain anything else.
func (c *CLI) open(ctx context.Context, hash cas.Algorithm) (*fsstore.Store, error) {
	dirs, err := c.Dirs()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dirs.Store); err == nil && !info.IsDir() {
		return nil, cmdline.Invalid(fmt.Sprintf("the store %s is not a directory", dirs.Store),
			"to use another directory: --store DIR")
	}
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home, Guest: true, Hash: hash})
	if err != nil {
		return nil, StoreError(err, c.Program)
	}
	if s.Exists() {
		return s, nil
	}
	if name, err := fsstore.Foreign(dirs.Store); err != nil || name != "" {
		if err != nil {
			return nil, err
		}
		return nil, cmdline.Invalid(fmt.Sprintf("%s is not a store: it contains %s", dirs.Store, name),
			"to use another directory: --store DIR")
	}
	return s, nil
}

// existing opens a store that must exist.
func (c *CLI) existing(ctx context.Context) (*fsstore.Store, error) {
	s, err := c.open(ctx, "")
	if err != nil {
		return nil, err
	}
	if !s.Exists() {
		return nil, cmdline.NotFound("no store at "+s.Dir(), c.Program+" init",
			"to use another directory: --store DIR")
	}
	return s, nil
}

// StoreError adds hints to an error about a store that can't be opened; program is the program name in hints.
func StoreError(err error, program string) error {
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		return err
	}
	hint := `restore it from a backup, or write: {"version":2,"hash":"xxh3"}`
	if coded.Code == protocol.CodeUnsupportedVersion {
		hint = "install the newest uwf"
	}
	return &protocol.Error{Code: coded.Code, Message: err.Error(), Err: err, Hints: []string{hint}}
}

// Classify adds a code to every error of the store; program is the program name in hints.
func Classify(err error, program string) *protocol.Error {
	out := &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	if _, ok := errors.AsType[*gc.DamagedError](err); ok {
		out.Code, out.Hints = protocol.CodeCorrupt, []string{
			program + " fsck", "to continue and delete what only damaged nodes or lost threads refer to: " + program + " gc --damaged",
		}
		return out
	}
	if coded, ok := errors.AsType[*protocol.Error](err); ok {
		return coded
	}
	var (
		corrupt   *cas.CorruptError
		collision *cas.CollisionError
		schema    *cas.SchemaError
		kind      *cas.TypeError
		budget    *jsonschema.BudgetError
	)
	if redacted, ok := cas.AsRedacted(err); ok {
		out.Code, out.Hints = protocol.CodeRedacted, []string{fmt.Sprintf("it was redacted at %s", time.UnixMilli(redacted.Tombstone.At).UTC().Format(time.RFC3339))}
		return out
	}
	switch {
	case errors.As(err, &corrupt), errors.As(err, &collision), errors.Is(err, cas.ErrNotFound):
		out.Code = protocol.CodeCorrupt
	case errors.As(err, &schema):
		out.Code, out.Message = protocol.CodeInvalid, schemaMessage(schema)
	case errors.As(err, &kind), errors.As(err, &budget):
		out.Code = protocol.CodeInvalid
	}
	return out
}

// schemaMessage formats all problems of a value instead of only the first.
func schemaMessage(e *cas.SchemaError) string {
	lines := []string{fmt.Sprintf("the value does not match schema %s", e.Type)}
	if e.Type == "" {
		lines[0] = "the value does not match the schema"
	}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}

// meant resolves a node by its place in a thread, if the program supports places, or as [node].
func (c *CLI) meant(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	if c.Place != nil && strings.Contains(arg, "@") {
		return c.Place(ctx, arg)
	}
	h, err := node(ctx, s, arg)
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		coded.Hints = append(coded.Hints, c.Program+" list")
	}
	return h, err
}

// node resolves a node by hash or unique prefix.
func node(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	h, err := cas.Resolve(ctx, s, arg)
	var many *cas.AmbiguousError
	switch {
	case errors.As(err, &many):
		var names []string
		for _, c := range many.Candidates[:min(5, len(many.Candidates))] {
			names = append(names, string(c))
		}
		return "", cmdline.NotFound(fmt.Sprintf("hash %q is ambiguous", arg), "type more characters: "+strings.Join(names, ", "))
	case errors.Is(err, cas.ErrNotFound):
		return "", cmdline.NotFound("unknown hash: "+arg, NearHashes(ctx, s, arg)...)
	}
	return h, err
}

// maxNear bounds the number of hashes compared with a missing one.
const maxNear = 50_000

// NearHashes returns hints for a missing hash that was probably mistyped. It checks hashes with the same
// beginning first.
func NearHashes(ctx context.Context, s cas.Store, arg string) []string {
	word := protocol.FoldCrockford(arg)
	if n := len(word); n < 11 || n > 15 {
		return nil // a shorter text is a prefix, and similar to too many
	}
	for _, prefix := range []string{word[:2], ""} {
		var known []string
		for h, err := range s.All(ctx, prefix) {
			if err != nil || len(known) == maxNear {
				break
			}
			known = append(known, string(h))
		}
		if near := suggest.Nearest(word, known, 1); len(near) > 0 {
			return []string{"did you mean " + near[0] + "?"}
		}
	}
	return nil
}

// meta is the name of the meta-schema, the type of schemas.
const meta = "schema"

// typeOf resolves a type by the name of a kind (step, @uwf/step), "schema" for the meta-schema, the
// original's name (@ocas/string), or hash.
func typeOf(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	if isText(arg) {
		arg = textType(s)
	}
	if n, ok := primitive(s, arg); ok {
		return n.Hash, nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(arg, protocol.TitlePrefix), originals)
	if t, ok := protocol.ParseType(name); ok && t.Known() {
		return s.Kinds().Schema(t).Hash, nil
	}
	if name == meta {
		return s.Kinds().MetaHash(), nil
	}
	h, err := node(ctx, s, arg)
	if err == nil {
		return h, mustBeSchema(ctx, s, h)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		var names []string
		for _, t := range protocol.Types() {
			names = append(names, t.String())
		}
		names = append(names, meta)
		coded.Message = "schema not found: " + arg
		if near := suggest.Nearest(arg, names, 1); len(near) > 0 {
			coded.Hints = append(coded.Hints, "did you mean "+near[0]+"?")
		}
		coded.Hints = append(coded.Hints, "a hash, or one of "+strings.Join(names, ", "))
	}
	return "", err
}

// mustBeSchema returns an error if a node isn't a schema.
func mustBeSchema(ctx context.Context, s cas.Store, h cas.Hash) error {
	n, err := s.Get(ctx, h)
	if err != nil || n.Type == s.Kinds().MetaHash() || n.Type == n.Hash {
		return err
	}
	return cmdline.Invalid(fmt.Sprintf("node %s is not a schema", h),
		fmt.Sprintf("did you mean its type, %s?", n.Type), "ocas schema list")
}

// The original's simplest types, such as @ocas/string, which it uses for texts. Their schemas are constant,
// so their hashes follow from the store.

// primitives lists the names after "@ocas/" and their JSON types.
func primitives() [][2]string {
	return [][2]string{
		{"string", "string"}, {"number", "number"}, {"integer", "integer"}, {"boolean", "boolean"},
		{"bool", "boolean"}, {"object", "object"}, {"array", "array"}, {"null", "null"},
	}
}

// originals is the prefix of the original's names.
const originals = "@ocas/"

// primitive returns the schema node of one of the original's types; false for any other name.
func primitive(s cas.Store, name string) (cas.Node, bool) {
	for _, p := range primitives() {
		if name != originals+p[0] {
			continue
		}
		payload, err := cas.Encode(map[string]any{"type": p[1]})
		if err != nil {
			return cas.Node{}, false // a constant: a test would detect it
		}
		meta := s.Kinds().MetaHash()
		return cas.Node{Hash: s.Algorithm().Sum(meta, payload), Type: meta, Payload: payload}, true
	}
	return cas.Node{}, false
}

// textType returns the name of the type for texts, which the original names differently.
func textType(s cas.Store) string {
	if files, ok := s.(*fsstore.Store); ok && files.Originals() {
		return originals + "string"
	}
	return "text"
}

// isText reports whether a name refers to the type of texts.
func isText(name string) bool { return strings.TrimPrefix(name, "@uwf/") == "text" }

func (c *CLI) init(ctx context.Context, cc *ucli.Context) error {
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
	return c.printLine(out, fmt.Sprintf("%s  %s", s.Dir(), s.Algorithm()))
}

// shown is the printed form of a node.
type shown struct {
	Hash      cas.Hash `json:"hash"`
	Type      cas.Hash `json:"type"`
	Payload   any      `json:"payload"`
	Timestamp *int64   `json:"timestamp,omitempty"`
}

func (c *CLI) get(ctx context.Context, cc *ucli.Context) error {
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

func (c *CLI) has(ctx context.Context, cc *ucli.Context) error {
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
	return c.printLine(out, there)
}

func (c *CLI) refs(ctx context.Context, cc *ucli.Context) error {
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

func (c *CLI) walk(ctx context.Context, cc *ucli.Context) error {
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
}

// typeAt returns the type of a node, including a redacted one.
func typeAt(ctx context.Context, s cas.Store, h cas.Hash) (cas.Hash, error) {
	n, err := s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return redacted.Tombstone.Type, nil
	}
	return n.Type, err
}

func (c *CLI) verify(ctx context.Context, cc *ucli.Context) error {
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
		return c.printLine(out, redacted.Error())
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
}

func (c *CLI) reindex(ctx context.Context, _ *ucli.Context) error {
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
	return c.printLine(out, fmt.Sprintf("%d nodes of %d types; nothing to rebuild: the store has no index", nodes,
		len(types)))
}

// tree prints the references of a node, indented. Each node is expanded once; an ellipsis marks later
// occurrences.
type tree struct {
	out       io.Writer
	store     cas.Store
	inspector *graph.Inspector
	types     bool
	seen      map[cas.Hash]bool
}

// place is a node to print. A stack of them replaces recursion, because chains are as long as threads.
type place struct {
	hash  cas.Hash
	depth int
}

// maxIndent keeps the lines of a long chain readable.
const maxIndent = 40

func printTree(ctx context.Context, out io.Writer, s cas.Store, root cas.Hash, types bool) error {
	t := &tree{out: out, store: s, inspector: graph.NewInspector(s), types: types, seen: map[cas.Hash]bool{}}
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
		title := plaintext.Line(titleOf(ctx, t.store, redacted.Tombstone.Type))
		_, err := fmt.Fprintf(t.out, "%s%s  %s  %s\n", indent, at.hash, title, redacted.Mark())
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
	_, err = fmt.Fprintf(t.out, "%s%s  %s\n", indent, at.hash, plaintext.Line(titleOf(ctx, t.store, n.Type)))
	return refs, err
}

// titleOf returns the title of a schema, or else its hash.
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
