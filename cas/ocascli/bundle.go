package ocascli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

func (c *CLI) exportCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "export", Usage: "export nodes to a bundle", ArgsUsage: "<hash…>",
		Flags: []ucli.Flag{OutputFlag()},
	}, func(ctx context.Context, cc *ucli.Context) error {
		s, err := c.existing(ctx)
		if err != nil {
			return err
		}
		var hashes []cas.Hash
		for _, arg := range cc.Args().Slice() {
			h, err := c.meant(ctx, s, arg)
			if err != nil {
				return err
			}
			hashes = append(hashes, h)
		}
		m, err := bundle.CollectNodes(s, hashes)
		if err != nil {
			return err
		}
		written, err := WriteBundle(ctx, c.Env, cc.String("output"), s, m, nil)
		if err != nil || cc.String("output") == "-" {
			return err
		}
		return c.print(written, func(w *bytes.Buffer) { PrintWritten(w, written) })
	})
}

// OutputFlag returns the flag for a bundle's output file.
func OutputFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` output file; - writes to stdout",
		Required: true}
}

// PrintWritten prints a summary of a bundle in one line.
func PrintWritten(w io.Writer, b bundle.Written) {
	redacted := ""
	if b.Tombstones > 0 {
		redacted = fmt.Sprintf(" and %d that were redacted", b.Tombstones)
	}
	kept := ""
	if b.Trees > 0 {
		kept = ", " + render.Count(b.Trees, "state") + " of the files"
	}
	fmt.Fprintf(w, "%d nodes%s%s, %s\n", b.Nodes, redacted, kept, render.Size(b.Bytes))
}

// WriteBundle atomically writes a bundle to a file, or to stdout unless that is a terminal. It returns the
// errors of [bundle.Write].
func WriteBundle(ctx context.Context, e env.Env, output string, s cas.Reader, m bundle.Manifest,
	files bundle.Objects) (bundle.Written, error) {
	if output == "-" {
		if terminal.Is(e.Stdout) {
			return bundle.Written{}, cmdline.UsageError("cannot write a bundle to a terminal", "-o threads.uwfb")
		}
		return bundle.Write(ctx, e.Stdout, s, m, files)
	}
	path := e.Path(output)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return bundle.Written{}, cmdline.UsageError(output+" is not a file",
			"--output "+plaintext.Word(filepath.Join(output, "threads.uwfb")))
	}
	f, err := durable.Create(durable.OS(), path, 0o600) // a run is private to its owner, who can share it
	if errors.Is(err, fs.ErrNotExist) {
		return bundle.Written{}, cmdline.NotFound("no directory for "+output,
			"mkdir -p "+plaintext.Word(filepath.Dir(path)))
	}
	if err != nil {
		return bundle.Written{}, err
	}
	written, err := bundle.Write(ctx, f, s, m, files)
	if err != nil {
		return written, errors.Join(err, f.Abort())
	}
	return written, f.Commit()
}

func (c *CLI) importCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "import", Usage: "import the nodes of a bundle", ArgsUsage: "<file>",
	}, func(ctx context.Context, cc *ucli.Context) (err error) {
		f, done, err := OpenBundle(ctx, c.Env, cc.Args().First())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		s, err := c.open(ctx, f.Algorithm())
		if err != nil {
			return err
		}
		imported, err := f.Import(ctx, bundle.Target{Store: s}, bundle.ImportOptions{Now: c.Env.Now})
		if err != nil {
			return err
		}
		if n := len(f.Manifest.Threads); n > 0 {
			fmt.Fprintf(c.Env.Stderr, "warning: imported only the nodes of %d threads; to import the threads: uwf "+
				"thread import\n", n)
		}
		return c.print(imported, func(w *bytes.Buffer) { PrintImported(w, imported) })
	})
}

// PrintImported prints the result of an import. Threads that play a part of another one are only counted.
func PrintImported(w io.Writer, i bundle.Imported) {
	parents, below := map[string]string{}, map[string]map[string]int{}
	for _, t := range i.Threads {
		parents[t.Thread] = t.Parent
	}
	for _, t := range i.Threads {
		root := t.Thread
		for range i.Threads { // bounds the search if the data is inconsistent
			if up := parents[root]; up != "" {
				root = up
			}
		}
		if root != t.Thread {
			if below[root] == nil {
				below[root] = map[string]int{}
			}
			below[root][t.Result]++
		}
	}
	for _, t := range i.Threads {
		if _, here := parents[t.Parent]; here {
			continue
		}
		from := ""
		if t.From != "" {
			from = " (was " + t.From + ")"
		}
		for _, result := range slices.Sorted(maps.Keys(below[t.Thread])) {
			from += fmt.Sprintf(", %s %s", childCount(below[t.Thread][result]), result)
		}
		fmt.Fprintf(w, "%s  %s%s\n", t.Thread, t.Result, from)
	}
	for _, n := range i.Workflows {
		if n.Result == bundle.Unchanged {
			continue
		}
		fmt.Fprintln(w, namedText(n))
	}
	for _, h := range i.Redacted {
		fmt.Fprintf(w, "node %s was redacted here and stays so\n", h)
	}
	if n := len(i.Redactions); n > 0 {
		fmt.Fprintf(w, "contains only tombstones of %s, which the author of the bundle may have forged: %s\n",
			render.Count(n, "redaction"), hashes(i.Redactions))
	}
	if i.Trees > 0 {
		fmt.Fprintln(w, render.Count(i.Trees, "state")+" of the files kept")
	}
	fmt.Fprintf(w, "%d nodes, %d of them new\n", i.Nodes, i.Added)
}

func childCount(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprintf("%d children", n)
}

// namedText describes the result for a workflow name.
func namedText(n bundle.ImportedWorkflow) string {
	name, own := plaintext.Line(n.Name), plaintext.Line(n.WorkflowName)
	switch n.Result {
	case bundle.Kept:
		return fmt.Sprintf("kept the name %s for another workflow, %s", name, n.Hash)
	case bundle.Misnamed:
		return fmt.Sprintf("not registered: the bundle calls workflow %s %s, but its name is %s", n.Hash, name, own)
	case bundle.Added:
		return fmt.Sprintf("registered the name %s for workflow %s", name, n.Hash)
	}
	return fmt.Sprintf("not registered: the name %s for workflow %s; to register it: --register", name, n.Hash)
}

// hashes lists the first few.
func hashes(all []cas.Hash) string {
	const shown = 5
	var words []string
	for _, h := range all[:min(len(all), shown)] {
		words = append(words, string(h))
	}
	if len(all) > shown {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// OpenBundle opens a bundle and checks its bytes; "-" is stdin. done closes it. The error is a
// [*protocol.Error] with the problem and its position.
func OpenBundle(ctx context.Context, e env.Env, name string) (_ *bundle.File, done func() error, err error) {
	if name == "-" {
		return receiveBundle(ctx, e.Stdin, "stdin")
	}
	in, err := os.Open(e.Path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, cmdline.NoFile(e.Dir, name, "to create one: uwf thread export <thread> -o threads.uwfb")
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = cmdline.Invalid(name+" is not a file", "name the file that uwf thread export -o wrote")
	}
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	start := make([]byte, bundle.Sniff)
	if n, _ := in.ReadAt(start, 0); bundle.Compressed(start[:n]) { // a read error is reported below
		f, done, err := receiveBundle(ctx, in, name)
		return f, done, errors.Join(err, in.Close())
	}
	f, err := bundle.Open(ctx, in, info.Size())
	if err != nil {
		_ = in.Close() // nothing was written
		return nil, nil, BundleError(name, err)
	}
	return f, in.Close, nil
}

// receiveBundle stores a stream or a compressed bundle in a temporary file, because it is read twice.
func receiveBundle(ctx context.Context, in io.Reader, name string) (*bundle.File, func() error, error) {
	spool, err := os.CreateTemp("", "uwf-bundle-*")
	if err != nil {
		return nil, nil, err
	}
	gone := os.Remove(spool.Name()) == nil // leaves nothing after a kill; on Windows an open file can't be removed
	done := func() error {
		err := spool.Close()
		if !gone {
			err = errors.Join(err, os.Remove(spool.Name()))
		}
		return err
	}
	f, err := bundle.Receive(ctx, in, spool)
	if err != nil {
		return nil, nil, errors.Join(BundleError(name, err), done())
	}
	return f, done, nil
}

// BundleError converts an error about a bundle for the command line.
func BundleError(name string, err error) error {
	var (
		fault *bundle.FaultError
		newer *bundle.NewerError
		hash  *bundle.HashError
	)
	switch {
	case errors.Is(err, bundle.ErrNotBundle):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s is not a bundle", name), Err: err,
			Hints: []string{"to create one: uwf thread export <thread> -o threads.uwfb"}}
	case errors.As(err, &newer):
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: fmt.Sprintf("%s: %v", name, err), Err: err,
			Hints: []string{"upgrade uwf"}}
	case errors.As(err, &hash):
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s: %v", name, err), Err: err,
			Hints: []string{"to import it into a separate store: --store DIR --home DIR"}}
	case errors.As(err, &fault):
		return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("bundle %s is damaged: %v", name, err),
			Err:   err,
			Hints: []string{"nothing was changed; copy the file again from where it was exported"}}
	}
	return err
}

// PrintTombstone prints that a node was redacted, and what confirms it.
func PrintTombstone(w io.Writer, h cas.Hash, reason string, at int64, sealed bool, threads ...string) {
	if reason != "" {
		reason = ": " + plaintext.Line(reason)
	}
	proof := "not sealed, so this tombstone may be forged"
	if sealed {
		proof = "sealed"
	}
	if len(threads) > 0 {
		proof = "thread " + strings.Join(threads, ", ") + "; " + proof
	}
	fmt.Fprintf(w, "redacted %s%s\n  %s; %s\n", h, reason, time.UnixMilli(at).UTC().Format(time.RFC3339), proof)
}
