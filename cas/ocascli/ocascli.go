// Package ocascli is the store's command line: the program ocas, and uwf's group
// "cas". A [CLI] holds what is common to the commands; each file has those of one
// idea. Results go to stdout, as JSON for programs and as text on a terminal.
package ocascli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/render"
)

// CLI is what the commands need. Dirs and Format are asked when a command runs,
// because flags decide.
type CLI struct {
	Env     env.Env
	Program string // as hints spell it: "ocas" or "uwf cas"
	Dirs    func() (home.Dirs, error)
	Format  func() render.Format
	// Place finds a node by its place in a thread, such as @-1; nil: only hashes
	// are known.
	Place func(ctx context.Context, arg string) (cas.Hash, error)
	// Files keeps the files of steps; nil: nobody knows of them.
	Files Files
	// Status is set by a command that did its work and found something that
	// scripts must see.
	Status protocol.Code
}

// Files is what keeps the files of steps, beside the store.
type Files interface {
	// CollectFiles removes those of threads that are in none of some homes, while alone
	// keeps new threads away; in a dry run it only counts. The line is for people.
	CollectFiles(ctx context.Context, homes []string, dry bool, alone func(func() error) error) (done any, line string, err error)
	// CheckFiles tells of steps whose files are damaged or missing, and how many states
	// of files were looked at.
	CheckFiles(ctx context.Context, wrong func(fsck.Fault)) (int, error)
}

// Commands are all commands of the store.
func (c *CLI) Commands() []*ucli.Command {
	return []*ucli.Command{
		c.initCommand(), c.getCommand(), c.putCommand(), c.putTextCommand(), c.hasCommand(), c.hashCommand(),
		c.refsCommand(), c.walkCommand(), c.listCommand(), c.schemaCommand(), c.verifyCommand(),
		c.reindexCommand(), c.fsckCommand(), c.gcCommand(),
		c.exportCommand(), c.importCommand(),
	}
}

// print writes a command's result.
func (c *CLI) print(value any, text func(io.Writer) error) error {
	return render.Print(c.Env.Stdout, c.Format(), value, text)
}

// open opens the store to write to it; it need not exist, but what is there must
// not be something else.
func (c *CLI) open(ctx context.Context, hash cas.Algorithm) (*fsstore.Store, error) {
	dirs, err := c.Dirs()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dirs.Store); err == nil && !info.IsDir() {
		return nil, cmdline.Invalid(fmt.Sprintf("the store %s is not a directory", dirs.Store), "name another directory: OCAS_HOME=DIR")
	}
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home, Guest: true, Hash: hash})
	if err != nil {
		return nil, StoreError(err, c.Program)
	}
	if s.Exists() {
		return s, nil
	}
	if name, err := foreign(dirs.Store); err != nil || name != "" {
		if err != nil {
			return nil, err
		}
		return nil, cmdline.Invalid(fmt.Sprintf("%s is not a store: there is %s in it", dirs.Store, name), "name another directory: OCAS_HOME=DIR")
	}
	return s, nil
}

// foreign is the name of something in a directory that a store which is being
// made does not have.
func foreign(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	for _, e := range entries {
		if name := e.Name(); name != "nodes" && name != "homes" && name != "foreign" && name != "format.lock" && name != "gc.lock" {
			return name, nil
		}
	}
	return "", err
}

// existing opens a store that must exist.
func (c *CLI) existing(ctx context.Context) (*fsstore.Store, error) {
	s, err := c.open(ctx, "")
	if err != nil {
		return nil, err
	}
	if !s.Exists() {
		return nil, cmdline.NotFound("there is no store at "+s.Dir(), c.Program+" init", "or name another directory: OCAS_HOME=DIR")
	}
	return s, nil
}

// StoreError says what to do about a store that cannot be opened; program is how
// hints name the commands.
func StoreError(err error, program string) error {
	var coded *protocol.Error
	if !errors.As(err, &coded) {
		return err
	}
	hint := program + " fsck --repair makes it again"
	if coded.Code == protocol.CodeUnsupportedVersion {
		hint = "install the newest uwf: this one does not touch the store"
	}
	return &protocol.Error{Code: coded.Code, Message: err.Error(), Err: err, Hints: []string{hint}}
}

// Classify gives every error of the store a code; program is how hints name the
// commands.
func Classify(err error, program string) *protocol.Error {
	out := &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	if _, ok := errors.AsType[*gc.DamagedError](err); ok {
		out.Code, out.Hints = protocol.CodeCorrupt, []string{
			program + " fsck", program + " gc --damaged continues, and removes what only damaged nodes or lost threads lead to",
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
		out.Code, out.Hints = protocol.CodeRedacted, []string{fmt.Sprintf("it was redacted at %s; its hash still stands for it", time.UnixMilli(redacted.Tombstone.At).UTC().Format(time.RFC3339))}
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

// schemaMessage shows all problems of a value, not only the first.
func schemaMessage(e *cas.SchemaError) string {
	lines := []string{fmt.Sprintf("the value does not satisfy schema %s", e.Type)}
	if e.Type == "" {
		lines[0] = "the value does not satisfy the schema"
	}
	for _, p := range e.Problems {
		lines = append(lines, "  "+p.String())
	}
	return strings.Join(lines, "\n")
}
